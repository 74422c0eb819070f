//! Shows what programs print that run side by side: one after the other, as if each had run alone.

use std::{
    io::Write,
    mem::take,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::output::{Reader, Row};

/// What has been printed and not been shown yet.
pub(crate) struct Printer {
    state: Mutex<State>,
}

struct State {
    output: Box<dyn Write + Send>,
    reader: Reader,
    /// The parts that were begun and not shown to their ends, in the order in which they began.
    parts: Vec<Printed>,
    /// The number of the part that is shown as it comes.
    live: Option<usize>,
    /// How many parts were begun.
    begun: usize,
}

#[derive(Debug)]
struct Printed {
    number: usize,
    /// True if the part is shown when it has ended, and not before: it runs beside all others.
    is_late: bool,
    has_ended: bool,
    bytes: Vec<u8>,
}

/// What one program prints. It has ended when this is dropped.
pub(crate) struct Part<'a> {
    printer: &'a Printer,
    number: usize,
}

impl Printer {
    /// Creates a printer that shows everything on `output`, and has `reader` read along.
    pub(crate) fn new(output: Box<dyn Write + Send>, reader: Reader) -> Self {
        Self { state: Mutex::new(State { output, reader, parts: Vec::new(), live: None, begun: 0 }) }
    }

    /// Returns the results of all programs. All of their parts have ended.
    pub(crate) fn rows(self) -> Vec<Row> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).reader.rows()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Shows what may be shown by now: if no part is live any more all that have ended, and then the oldest of those that run.
    fn show(&mut self) {
        while self.live.is_none() {
            let ended = self.parts.iter().position(|part| part.has_ended);
            let next = ended.or_else(|| self.parts.iter().position(|part| !part.is_late));
            let Some(place) = next else { return };
            let part = &mut self.parts[place];
            let bytes = take(&mut part.bytes);
            if part.has_ended {
                self.parts.remove(place);
            } else {
                self.live = Some(part.number);
            }
            self.read(&bytes);
        }
    }

    fn end(&mut self, number: usize) {
        if self.live == Some(number) {
            self.live = None;
            self.parts.retain(|part| part.number != number);
        } else if let Some(part) = self.parts.iter_mut().find(|part| part.number == number) {
            part.has_ended = true;
        }
        self.show();
    }

    fn read(&mut self, bytes: &[u8]) {
        // The reader of our output may be gone, which is no reason to stop.
        let _ = self.output.write_all(bytes).and_then(|()| self.output.flush());
        self.reader.feed(bytes);
    }
}

impl<'a> Part<'a> {
    pub(crate) fn begin(printer: &'a Printer, is_late: bool) -> Self {
        let mut state = printer.state();
        let number = state.begun;
        state.begun += 1;
        state.parts.push(Printed { number, is_late, has_ended: false, bytes: Vec::new() });
        state.show();
        drop(state);
        Self { printer, number }
    }

    pub(crate) fn print(&self, bytes: &[u8]) {
        let mut state = self.printer.state();
        if state.live == Some(self.number) {
            state.read(bytes);
        } else if let Some(part) = state.parts.iter_mut().find(|part| part.number == self.number) {
            part.bytes.extend_from_slice(bytes);
        }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        // A program that was killed may have left a line open.
        self.print(b"\n");
        self.printer.state().end(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::test::output::Target;

    /// Prints a program whose only test has this outcome.
    fn print(part: &Part<'_>, name: &str, outcome: &str) {
        part.print(format!("Running {name} (deps/{name})\ntest a ... ").as_bytes());
        part.print(format!("{outcome}\ntest result: {outcome}. 1 passed; finished in 1.00s\n").as_bytes());
    }

    fn printer() -> Printer {
        let names = ["one", "two", "late"].map(|name| (name.to_owned(), Target::of("ylock", name)));
        Printer::new(Box::new(io::sink()), Reader::new(names.into()))
    }

    fn names(printer: Printer) -> Vec<String> {
        printer.rows().into_iter().map(|row| row.target.name).collect()
    }

    #[test]
    fn programs_that_run_side_by_side_are_read_one_after_the_other() {
        let printer = printer();
        let (one, two) = (Part::begin(&printer, false), Part::begin(&printer, false));
        two.print(b"Running two (deps/two)\ntest a ... ");
        print(&one, "one", "ok");
        two.print(b"ok\ntest result: ok. 1 passed; finished in 1.00s\n");
        drop(two);
        drop(one);
        let rows = printer.rows();
        assert!(rows.iter().all(|row| row.finished && row.passed == 1), "{rows:?}");
        assert_eq!(rows.iter().map(|row| &*row.target.name).collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn what_runs_beside_all_others_keeps_none_of_them_from_being_shown() {
        let printer = printer();
        let late = Part::begin(&printer, true);
        print(&late, "late", "ok");
        for name in ["one", "two"] {
            print(&Part::begin(&printer, false), name, "ok");
        }
        assert!(printer.state().parts.iter().all(|part| part.is_late), "both were shown");
        drop(late);
        assert_eq!(names(printer), ["one", "two", "late"]);
    }

    #[test]
    fn a_line_that_was_left_open_does_not_hide_the_next_program() {
        let printer = printer();
        Part::begin(&printer, false).print(b"Running one (deps/one)\ntest a ... ");
        print(&Part::begin(&printer, false), "two", "ok");
        assert_eq!(names(printer), ["one", "two"]);
    }
}
