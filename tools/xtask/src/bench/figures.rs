//! The figures in what a benchmark prints: lines with numbers, which another run prints with other numbers.

use std::collections::BTreeMap;

/// A line of a benchmark: the text without its numbers, below which heading, and the how many-th of its kind there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    heading: String,
    text: String,
    number: usize,
}

/// What the runs of one program have printed.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// The places in the order in which the first run printed them.
    pub(super) order: Vec<Place>,
    /// For each place the numbers of each run.
    runs: BTreeMap<Place, Vec<Vec<f64>>>,
}

/// The sign that stands for a number in a text.
const NUMBER: char = '\u{0}';

impl Figures {
    /// Reads what one run has printed.
    pub(super) fn add(&mut self, printed: &str) {
        let (mut heading, mut seen) = (String::new(), BTreeMap::<String, usize>::new());
        for line in printed.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                heading = title.to_owned();
                seen.clear();
            }
            let (text, numbers) = split(line);
            if numbers.is_empty() {
                continue;
            }
            let count = seen.entry(text.clone()).or_default();
            let place = Place { heading: heading.clone(), text, number: *count };
            *count += 1;
            if !self.runs.contains_key(&place) {
                self.order.push(place.clone());
            }
            self.runs.entry(place).or_default().push(numbers);
        }
    }

    /// Returns the median of each number at a place.
    pub(super) fn medians(&self, place: &Place) -> Option<Vec<f64>> {
        let runs = self.runs.get(place)?;
        let numbers = runs.first()?.len();
        Some((0..numbers).map(|at| median(runs.iter().map(|run| run[at]).collect())).collect())
    }
}

impl Place {
    /// Returns the line with these numbers.
    pub(super) fn with(&self, numbers: &[f64]) -> String {
        let mut numbers = numbers.iter();
        let shown = |letter| match letter {
            NUMBER => numbers.next().map(|number| shown(*number)).unwrap_or_default(),
            letter => String::from(letter),
        };
        self.text.chars().map(shown).collect()
    }

    pub(super) fn heading(&self) -> &str {
        &self.heading
    }
}

/// Returns a number with three digits that count, and no fewer than it has before the point.
fn shown(number: f64) -> String {
    let digits = if number == 0.0 { 0 } else { 2 - number.abs().log10().floor() as i32 };
    let is_whole = number.fract() == 0.0;
    let decimals = if is_whole { 0 } else { usize::try_from(digits).unwrap_or(0) };
    format!("{number:.decimals$}")
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 { numbers[middle] } else { (numbers[middle - 1] + numbers[middle]) / 2.0 }
}

/// Returns the text of a line with a sign for each number, without what only pads it, and the numbers. A digit in a word, such as that of
/// `p50`, is none.
fn split(line: &str) -> (String, Vec<f64>) {
    let (mut text, mut numbers, mut rest) = (String::new(), Vec::new(), line.trim());
    while let Some(letter) = rest.chars().next() {
        let is_in_word = text.ends_with(|last: char| last.is_alphanumeric() || last == NUMBER);
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..length].trim_end_matches('.');
        if letter.is_ascii_digit() && !is_in_word && number.parse::<f64>().is_ok() {
            numbers.extend(number.parse::<f64>());
            text.push(NUMBER);
            rest = &rest[number.len()..];
            continue;
        }
        if letter != ' ' || !text.ends_with(' ') {
            text.push(letter);
        }
        rest = &rest[letter.len_utf8()..];
    }
    (text, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_into_text_and_numbers() {
        let (text, numbers) = split("  2 clients: gap p50   0.062 ms,  1.98 round trips.");
        assert_eq!(numbers, [2.0, 0.062, 1.98]);
        let place = Place { heading: String::new(), text, number: 0 };
        assert_eq!(place.with(&numbers), "2 clients: gap p50 0.0620 ms, 1.98 round trips.");
    }

    #[test]
    fn lines_of_one_kind_are_told_apart_and_medians_taken() {
        let mut figures = Figures::default();
        for last in ["10", "30", "20"] {
            figures.add(&format!("## gaps\n2 clients: 5 ms\n8 clients: {last} ms\nno number\n"));
        }
        let medians: Vec<_> = figures.order.iter().filter_map(|place| figures.medians(place)).collect();
        assert_eq!(medians, [[2.0, 5.0], [8.0, 20.0]]);
        assert_eq!(figures.order[1].heading(), "gaps");
    }

    #[test]
    fn numbers_are_shown_with_what_counts() {
        let shown = [0.0, 2.0, 1_234.5, 12.345, 0.012_34].map(shown);
        assert_eq!(shown, ["0", "2", "1234", "12.3", "0.0123"]);
    }
}
