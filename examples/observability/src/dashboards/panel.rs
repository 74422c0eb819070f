//! One panel, as it is described before it becomes JSON.

/// What is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "an example")]
pub enum Draw {
    /// One number of now, or of the whole range.
    Stat,
    /// Lines over time.
    Lines,
    /// The same, one on top of the other.
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
    /// With Grafana's variables in it.
    pub expression: String,
    /// What its series are called: `{{label}}`.
    pub legend: &'static str,
    /// It answers nothing as long as all is well. In the check the workload loses a lock, waits in vain and makes a mistake, which
    /// fills all of these.
    pub empty_when_healthy: bool,
}

/// One panel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Panel {
    /// What it shows.
    pub title: &'static str,
    /// What that means, and what to do when it looks bad.
    pub description: &'static str,
    /// How.
    pub draw: Draw,
    /// A unit by Grafana's names.
    pub unit: &'static str,
    /// Of 24.
    pub width: u32,
    /// What is asked.
    pub targets: Vec<Target>,
    /// The alerts about the same thing.
    pub alerts: Vec<&'static str>,
    /// From which value on which colour; below the first one green.
    pub colours: Vec<(f64, &'static str)>,
    /// Where a click on a series with the label `group` leads.
    pub drill_down: Option<&'static str>,
}

impl Panel {
    /// A panel without a query.
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

    /// With one more query.
    pub fn ask(mut self, legend: &'static str, expression: String) -> Self {
        self.targets.push(Target { expression, legend, empty_when_healthy: false });
        self
    }

    /// With one more query, that answers nothing as long as all is well.
    pub fn ask_of_trouble(mut self, legend: &'static str, expression: String) -> Self {
        self.targets.push(Target { expression, legend, empty_when_healthy: true });
        self
    }

    /// With a link to an alert.
    pub fn alert(mut self, name: &'static str) -> Self {
        self.alerts.push(name);
        self
    }

    /// With a colour from this value on.
    pub fn from(mut self, value: f64, colour: &'static str) -> Self {
        self.colours.push((value, colour));
        self
    }

    /// With a way to the dashboard of one group.
    pub fn drill_down(mut self) -> Self {
        self.drill_down = Some(super::GROUP);
        self
    }

    /// In units of Grafana's grid.
    pub fn height(&self) -> u32 {
        if self.draw == Draw::Stat { 4 } else { 8 }
    }
}
