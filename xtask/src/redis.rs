//! One real Redis server, on a port that was free when it started, with nothing on disk.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    daemon::{self, Daemon, Life},
    file_lock::FileLock,
    places::Places,
    progress::Step,
    tools,
};

#[derive(Clone, Debug)]
pub(crate) struct Redis {
    places: Places,
}

impl Redis {
    pub(crate) fn new(places: &Places) -> Self {
        Self { places: places.clone() }
    }

    /// Brings it up if it is not. `keep`: until somebody says `down`.
    pub(crate) fn up(&self, keep: bool) -> Result<()> {
        let _alone = FileLock::exclusive(&self.places.change_lock())?;
        if self.daemon().life() != Life::Running || self.port().is_err() {
            self.start()?;
        }
        if keep {
            fs::write(self.kept(), "")?;
        }
        Ok(())
    }

    pub(crate) fn down(&self) -> Result<()> {
        let _alone = FileLock::exclusive_regardless(&self.places.change_lock())?;
        self.stop()
    }

    /// Stops it unless `up` asked for it.
    pub(crate) fn stop_unkept(&self) -> Result<()> {
        let _alone = FileLock::exclusive_regardless(&self.places.change_lock())?;
        if self.kept().exists() { Ok(()) } else { self.stop() }
    }

    /// What tests are told about it.
    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, String)>> {
        Ok(vec![("YLOCK_TEST_REDIS", format!("127.0.0.1:{}", self.port()?))])
    }

    fn start(&self) -> Result<()> {
        let program = tools::redis()?;
        let step = Step::begin("starting Redis".to_owned());
        daemon::stop_all(&[self.daemon()])?;
        let folder = self.folder();
        fs::create_dir_all(&folder)?;
        let port = free_port()?;
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir", &self.mark()]);
        command.args(["--save", "", "--appendonly", "no"]);
        // Otherwise its command line would not show whose it is.
        command.args(["--set-proc-title", "no"]);
        self.daemon().start(&mut command, &folder.join("log"))?;
        await_answer(port).with_context(|| format!("see {}", folder.join("log").display()))?;
        fs::write(folder.join("port"), port.to_string())?;
        step.done("started Redis");
        Ok(())
    }

    fn stop(&self) -> Result<()> {
        if self.daemon().life() != Life::Dead {
            daemon::stop_all(&[self.daemon()])?;
        }
        // Not there when no `up` asked for it.
        let _ = fs::remove_file(self.kept());
        Ok(())
    }

    fn port(&self) -> Result<u16> {
        let file = self.folder().join("port");
        let port = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
        Ok(port.trim().parse()?)
    }

    fn daemon(&self) -> Daemon {
        Daemon::new(self.folder().join("pid"), self.mark())
    }

    fn mark(&self) -> String {
        self.folder().display().to_string()
    }

    fn kept(&self) -> PathBuf {
        self.folder().join("kept")
    }

    fn folder(&self) -> PathBuf {
        self.places.root().join("redis")
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn await_answer(port: u16) -> Result<()> {
    let began = Instant::now();
    while !answers(port) {
        if began.elapsed() > Duration::from_secs(20) {
            bail!("Redis does not answer");
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        Ok(&answer == b"+PONG")
    };
    ask().unwrap_or(false)
}
