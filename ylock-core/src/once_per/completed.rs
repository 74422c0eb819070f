//! What work says of itself when it has come to its end.

/// What the work of a job returns: whether it is done, or is to be begun again within its period where that is
/// [wanted](crate::Period::until_done).
///
/// Work that returns nothing is done when it has come to its end, and a `Result` that is `Ok` is done.
#[diagnostic::on_unimplemented(
    message = "the work of a job returns `()` or a `Result`, or a type that says whether it is done",
    note = "return `Ok::<_, Error>(value)`, or implement `ylock::Completed` for `{Self}`"
)]
pub trait Completed {
    /// Returns whether the work is done.
    fn is_done(&self) -> bool;
}

impl Completed for () {
    fn is_done(&self) -> bool {
        true
    }
}

impl<T, E> Completed for Result<T, E> {
    fn is_done(&self) -> bool {
        self.is_ok()
    }
}
