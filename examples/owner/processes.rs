//! The processes, and what they say.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use ylock::Token;

use super::Result;

/// What an owner says.
#[derive(Debug)]
pub(crate) enum Said {
    /// It has looked whether it is the owner, and sends when it is let go on.
    AboutToSend,
    /// It sends work.
    Work(Token),
}

/// The processes of the owners.
#[derive(Debug)]
pub(crate) struct Processes {
    /// Each is killed when it is dropped.
    children: Vec<Child>,
    inputs: Vec<ChildStdin>,
    lines: mpsc::UnboundedReceiver<(usize, String)>,
}

impl Processes {
    pub(crate) fn start(how_many: usize, url: &str) -> Result<Self> {
        let program = std::env::current_exe()?;
        let (to_lines, lines) = mpsc::unbounded_channel();
        let (mut children, mut inputs) = (Vec::new(), Vec::new());
        for owner in 0..how_many {
            let mut command = Command::new(&program);
            command.args(["owner", url]).kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn()?;
            inputs.push(child.stdin.take().ok_or("no standard input")?);
            let output = child.stdout.take().ok_or("no standard output")?;
            tokio::spawn(forward(owner, output, to_lines.clone()));
            children.push(child);
        }
        Ok(Self { children, inputs, lines })
    }

    /// Returns what is said next, and by which owner.
    pub(crate) async fn next(&mut self) -> Result<(usize, Said)> {
        let (owner, line) = self.lines.recv().await.ok_or("all owners have ended")?;
        let said = match line.split_once(' ') {
            Some(("work", token)) => Said::Work(token.parse()?),
            Some(("about", _)) => Said::AboutToSend,
            _ => return Err(format!("process {owner}: {line}").into()),
        };
        Ok((owner, said))
    }

    /// Lets an owner go on that is about to send.
    pub(crate) async fn go_on(&mut self, owner: usize) -> Result<()> {
        Ok(self.inputs[owner].write_all(b"go on\n").await?)
    }

    /// Pauses an owner: nothing of it runs any more, also not what renews its lock.
    pub(crate) async fn pause(&self, owner: usize) -> Result<()> {
        self.signal(owner, "STOP").await
    }

    /// Ends the pause of an owner, and lets it go on.
    pub(crate) async fn resume(&mut self, owner: usize) -> Result<()> {
        self.signal(owner, "CONT").await?;
        self.go_on(owner).await
    }

    async fn signal(&self, owner: usize, signal: &str) -> Result<()> {
        let pid = self.children[owner].id().ok_or("the owner has ended")?;
        let sent = Command::new("sh").arg("-c").arg(format!("kill -s {signal} {pid}")).status().await?;
        if sent.success() { Ok(()) } else { Err(format!("{signal} could not be sent: {sent}").into()) }
    }

    pub(crate) async fn end(mut self) -> Result<()> {
        for child in &mut self.children {
            child.kill().await?;
        }
        Ok(())
    }
}

async fn forward(owner: usize, output: ChildStdout, to: mpsc::UnboundedSender<(usize, String)>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if to.send((owner, line)).is_err() {
            return;
        }
    }
    drop(to.send((owner, "it has ended".to_owned())));
}
