//! One definition for each option, and what follows from it: its field, its name in URLs, files and the environment, its default, its
//! builder method, and its row in `docs/options.md`.

/// The description of one option, as messages and tables show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by `define_options!` in the crates of engines")]
pub struct Definition {
    /// The name in a URL, a configuration file and the environment.
    pub name: &'static str,
    /// The value that is used if the caller chooses none, as Markdown; empty if there is no default.
    pub default: &'static str,
    /// The documentation of the option, one line for each of the source.
    pub doc: &'static str,
}

impl Definition {
    /// Returns the first paragraph of the documentation, without the targets of its links.
    pub fn summary(&self) -> String {
        let lines = self.doc.lines().map(str::trim).take_while(|line| !line.is_empty());
        let mut rest = lines.collect::<Vec<_>>().join(" ");
        let mut summary = String::new();
        while let Some((before, (link, after))) =
            rest.split_once('[').and_then(|(before, tail)| Some((before, tail.split_once(']')?)))
        {
            let after = after
                .strip_prefix('(')
                .and_then(|target| target.split_once(')'))
                .map_or(after, |(_, after)| after);
            summary.extend([before, link]);
            rest = after.to_owned();
        }
        summary + &rest
    }

    /// Returns the row of a table in Markdown: name, default, summary.
    pub fn markdown(&self) -> String {
        let blank = if self.default.is_empty() { "" } else { " " };
        format!("| `{}` |{blank}{} | {} |", self.name, self.default, self.summary())
    }
}

/// Defines the options of a client or an engine: a struct with the given fields, and one more for each option.
///
/// An option is `name / with_name: Type = "default";`, or `name / with_name: Type or "what happens without it, as Markdown";` whose field is
/// an `Option`. Its documentation becomes that of the builder method; the first paragraph is also its row in `docs/options.md`. Without
/// `/ with_name` there are neither builder method nor getter: they are written by hand where one value has several names. A default has to
/// be readable as [`OptionValue`](crate::options::OptionValue).
///
/// An engine over a network says `includes reach: Reach;`. That adds the options of [`Reach`](crate::options::Reach) and its methods, and a
/// private `read(self, url, common)` for its `from_url`, which ends with the engine's own `check`.
#[macro_export]
macro_rules! define_options {
    (
        $(#[$struct_meta:meta])*
        $vis:vis struct $Options:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $Field:ty),* $(,)?
        }
        $(includes $part:ident: $Part:ty;)?
        $(
            $(#[doc = $doc:tt])+
            $name:ident $(/ $with:ident)?: $Type:ident $(= $default:tt)? $(or $without:tt)?;
        )*
    ) => {
        $(#[$struct_meta])*
        $vis struct $Options {
            $($(#[$field_meta])* $field_vis $field: $Field,)*
            $($part: $Part,)?
            $($name: $crate::define_options!(@type $Type $(= $default)? $(or $without)?),)*
        }

        impl $Options {
            const DEFINITIONS: &'static [$crate::options::Definition] = &[$(
                $crate::options::Definition {
                    name: stringify!($name),
                    default: $crate::define_options!(@shown $(= $default)? $(or $without)?),
                    doc: concat!($($doc, "\n"),+),
                },
            )*];

            /// Returns the definition of every option that [`set`](Self::set) takes.
            pub fn definitions() -> Vec<$crate::options::Definition> {
                [$(<$Part>::definitions(),)? Self::DEFINITIONS.to_vec()].concat()
            }

            /// Sets one option from text, as a URL has it. Returns whether there is an option of this name.
            ///
            /// # Errors
            /// An error of the kind `Config` if the value cannot be read; it names the option and what is allowed.
            pub fn set(&mut self, name: &str, value: &str) -> $crate::Result<bool> {
                match name {
                    $(stringify!($name) => self.$name = $crate::options::read(name, value)?,)*
                    _ => {
                        $(if self.$part.set(name, value)? { return Ok(true); })?
                        return Ok(false);
                    }
                }
                Ok(true)
            }

            fn with_defaults($($field: $Field,)* $($part: $Part)?) -> Self {
                Self {
                    $($field,)*
                    $($part,)?
                    $($name: $crate::define_options!(@default $(= $default)? $(or $without)?),)*
                }
            }

            $($crate::reach_methods!($part);)?

            $($crate::define_options!(
                @methods [$($doc)+] $name $($with)?: $Type $(= $default)? $(or $without)?
            );)*
        }
    };

    (@type $Type:ident = $default:tt) => { $Type };
    (@type $Type:ident or $without:tt) => { Option<$Type> };

    (@default = $default:tt) => { $crate::options::preset($default) };
    (@default or $without:tt) => { None };

    (@shown = $default:tt) => { concat!("`", $default, "`") };
    (@shown or $without:tt) => { $without };

    (@methods $docs:tt $name:ident: $($rest:tt)+) => {};
    (@methods [$($doc:tt)+] $name:ident $with:ident: String = $default:tt) => {
        $(#[doc = $doc])+
        #[doc = concat!("\n\nThe option `", stringify!($name), "`, by default `", $default, "`.")]
        #[must_use]
        pub fn $with(mut self, $name: impl Into<String>) -> Self {
            self.$name = $name.into();
            self
        }

        #[doc = concat!("Returns what [`", stringify!($with), "`](Self::", stringify!($with), ") sets.")]
        pub fn $name(&self) -> &str {
            &self.$name
        }
    };
    (@methods [$($doc:tt)+] $name:ident $with:ident: $Type:ident = $default:tt) => {
        $(#[doc = $doc])+
        #[doc = concat!("\n\nThe option `", stringify!($name), "`, by default `", $default, "`.")]
        #[must_use]
        pub fn $with(mut self, $name: $Type) -> Self {
            self.$name = $name;
            self
        }

        #[doc = concat!("Returns what [`", stringify!($with), "`](Self::", stringify!($with), ") sets.")]
        pub fn $name(&self) -> $Type {
            self.$name
        }
    };
    (@methods [$($doc:tt)+] $name:ident $with:ident: String or $without:tt) => {
        $(#[doc = $doc])+
        #[doc = $crate::define_options!(@without $name $without)]
        #[must_use]
        pub fn $with(mut self, $name: impl Into<String>) -> Self {
            self.$name = Some($name.into());
            self
        }
    };
    (@methods [$($doc:tt)+] $name:ident $with:ident: $Type:ident or $without:tt) => {
        $(#[doc = $doc])+
        #[doc = $crate::define_options!(@without $name $without)]
        #[must_use]
        pub fn $with(mut self, $name: $Type) -> Self {
            self.$name = Some($name);
            self
        }
    };

    (@without $name:ident "") => { concat!("\n\nThe option `", stringify!($name), "`.") };
    (@without $name:ident $without:tt) => {
        concat!("\n\nThe option `", stringify!($name), "`, by default ", $without, ".")
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_first_paragraph_without_its_links() {
        let doc =
            " Who is served [first](x), by [`Key`];\n see [`with_lease`](Self::with_lease).\n\n More.\n";
        let summary = "Who is served first, by `Key`; see `with_lease`.";
        assert_eq!(
            Definition { name: "a", default: "`1`", doc }.markdown(),
            format!("| `a` | `1` | {summary} |")
        );
        assert_eq!(Definition { name: "a", default: "", doc }.markdown(), format!("| `a` | | {summary} |"));
    }
}
