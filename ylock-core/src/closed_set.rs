//! Closed sets: enums whose values have a word each.

/// Lists the values of an enum, with the word for each, once: defines `ALL` and `as_str`. A variant that is missing in the list does not
/// compile.
///
/// # Examples
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Door { Open, Shut }
/// ylock_core::closed_set! {
///     /// Returns what the sign on the door says.
///     Door: Open = "open", Shut = "shut"
/// }
///
/// assert_eq!(Door::ALL, [Door::Open, Door::Shut]);
/// assert_eq!(Door::Shut.as_str(), "shut");
/// ```
#[macro_export]
macro_rules! closed_set {
    ($(#[$doc:meta])* $vis:vis $Enum:ident: $($Variant:ident = $word:literal),+ $(,)?) => {
        impl $Enum {
            /// All values, in the order of their definition.
            $vis const ALL: &'static [Self] = &[$(Self::$Variant),+];

            $(#[$doc])*
            $vis const fn as_str(self) -> &'static str {
                match self { $(Self::$Variant => $word),+ }
            }
        }
    };
}
