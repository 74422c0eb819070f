//! One panel, as it is described before it becomes JSON.

/// The kind of drawing of a panel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "an example")]
pub enum Draw {
    /// One number: the present one, or one for the whole range.
    Stat,
    /// Lines over time.
    Lines,
    /// Lines over time, one on top of the other.
    Stack,
    /// Counts by bucket over time.
    Heatmap,
    /// Rows of labels and a number.
    Table,
}

/// One query of a panel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Target {
    /// The expression, with Grafana's variables in it.
    pub expression: String,
    /// The names of the series: `{{label}}`.
    pub legend: &'static str,
    /// Set for a query that returns nothing as long as all is well. In the check the workload loses a lock, waits in vain and makes a
    /// mistake, so that all of these queries return something.
    pub empty_when_healthy: bool,
}

/// One panel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Panel {
    /// The title: what the panel shows.
    pub title: &'static str,
    /// The meaning of the panel, and what to do when it looks bad.
    pub description: &'static str,
    /// The kind of drawing.
    pub draw: Draw,
    /// The unit, by Grafana's names.
    pub unit: &'static str,
    /// The width in columns, of 24.
    pub width: u32,
    /// The queries.
    pub targets: Vec<Target>,
    /// The alerts about what the panel shows.
    pub alerts: Vec<&'static str>,
    /// The colours, each with the value from which on it is used; below the first value the colour is green.
    pub colours: Vec<(f64, &'static str)>,
    /// The dashboard to which a click on a series with the label `group` leads.
    pub drill_down: Option<&'static str>,
}

impl Panel {
    /// Creates a panel without a query.
    pub fn new(
        draw: Draw,
        width: u32,
        unit: &'static str,
        title: &'static str,
        description: &'static str,
    ) -> Self {
        let (targets, alerts, colours, drill_down) = (Vec::new(), Vec::new(), Vec::new(), None);
        Self { title, description, draw, unit, width, targets, alerts, colours, drill_down }
    }

    /// Adds a query.
    pub fn ask(mut self, legend: &'static str, expression: String) -> Self {
        self.targets.push(Target { expression, legend, empty_when_healthy: false });
        self
    }

    /// Adds a query that returns nothing as long as all is well.
    pub fn ask_of_trouble(mut self, legend: &'static str, expression: String) -> Self {
        self.targets.push(Target { expression, legend, empty_when_healthy: true });
        self
    }

    /// Adds a link to an alert.
    pub fn alert(mut self, name: &'static str) -> Self {
        self.alerts.push(name);
        self
    }

    /// Adds a colour that is used from this value on.
    pub fn from(mut self, value: f64, colour: &'static str) -> Self {
        self.colours.push((value, colour));
        self
    }

    /// Adds a link from each series to the dashboard of its group.
    pub fn drill_down(mut self) -> Self {
        self.drill_down = Some(super::GROUP);
        self
    }

    /// Returns the height in units of Grafana's grid.
    pub fn height(&self) -> u32 {
        if self.draw == Draw::Stat { 4 } else { 8 }
    }
}
