//! Writes numbers and names.

use crate::prometheus::Series;

/// Returns a number with its unit, in three digits.
pub(super) fn number(value: f64, unit: &str) -> String {
    let (value, unit) = match unit {
        "s" if value == 0.0 => (value, " s"),
        "s" if value < 1e-3 => (value * 1e6, " µs"),
        "s" if value < 1.0 => (value * 1e3, " ms"),
        "s" => (value, " s"),
        "percentunit" => (value * 100.0, " %"),
        "ops" | "reqps" => (value, "/s"),
        _ => (value, ""),
    };
    // Divisions of floating-point numbers leave small errors.
    let value = if (value - value.round()).abs() < 1e-6 { value.round() } else { value };
    let digits = match value.abs() {
        _ if value.fract() == 0.0 => 0,
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{unit}")
}

/// Returns a legend in which each `{{label}}` is replaced by the value of that label.
pub(super) fn legend(legend: &str, series: &Series) -> String {
    let mut text = legend.to_owned();
    for (label, value) in &series.labels {
        text = text.replace(&format!("{{{{{label}}}}}"), value);
    }
    text
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let shown = [
            (0.0, "s"),
            (0.000_25, "s"),
            (0.0123, "s"),
            (12.34, "s"),
            (0.987, "percentunit"),
            (432.1, "ops"),
        ];
        let shown = shown.map(|(value, unit)| number(value, unit));
        assert_eq!(shown, ["0 s", "250 µs", "12.3 ms", "12.3 s", "98.7 %", "432/s"]);
    }
}
