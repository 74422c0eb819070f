//! etcd members that belong to one test.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use ylock_core::url::Host;
use ylock_testkit::own_servers::{self, free_port, until};

/// One member, alone or of a cluster.
pub(crate) struct Member {
    port: u16,
    peer: u16,
    folder: PathBuf,
    /// The command that starts it, again and again.
    program: Command,
    child: Child,
}

/// Members that elect a leader among them.
pub(crate) struct Cluster(pub(crate) Vec<Member>);

impl Cluster {
    /// Starts so many members, and waits until they serve.
    pub(crate) async fn start(count: usize) -> Self {
        let peers: Vec<_> = (0..count).map(|_| free_port("127.0.0.1")).collect();
        Self::of((0..count).map(|number| Member::launch(number, &peers, &[])).collect()).await
    }

    /// Starts a member that is alone, with more arguments; in them `{own}` is the URL that it listens at.
    pub(crate) async fn start_with(more: &[String]) -> Self {
        Self::of(vec![Member::launch(0, &[free_port("127.0.0.1")], more)]).await
    }

    /// Starts a member that only learns, and returns its id.
    pub(crate) async fn add_learner(&mut self) -> String {
        let peers: Vec<_> = self.0.iter().map(|member| member.peer).chain([free_port("127.0.0.1")]).collect();
        let number = self.0.len();
        let add = format!(r#"{{"peerURLs":["http://127.0.0.1:{}"],"isLearner":true}}"#, peers[number]);
        let said = self.0[0].post("/v3/cluster/member/add", &add).await.unwrap();
        let id = said.split("\"member\":").nth(1).and_then(|member| field(member, "ID")).expect("its id");
        // The last of two equal arguments counts.
        let learner = Member::launch(number, &peers, &["--initial-cluster-state=existing".to_owned()]);
        until("it knows that it learns", async || {
            let said = learner.post("/v3/maintenance/status", "{}").await;
            said.is_some_and(|said| said.contains(r#""isLearner":true"#))
        })
        .await;
        self.0.push(learner);
        id
    }

    /// Gives a learner a vote. Returns whether it has learned enough for that.
    pub(crate) async fn promote(&self, id: &str) -> bool {
        let said = self.0[0].post("/v3/cluster/member/promote", &format!(r#"{{"ID":"{id}"}}"#)).await;
        said.is_some_and(|said| said.contains("200 OK"))
    }

    async fn of(members: Vec<Member>) -> Self {
        let cluster = Self(members);
        for member in &cluster.0 {
            member.until_it_serves().await;
        }
        cluster
    }

    pub(crate) fn hosts(&self) -> Vec<Host> {
        self.0.iter().map(Member::host).collect()
    }

    /// Returns the number of the leader, as one of these members knows it.
    pub(crate) async fn leader(&self, of: &[usize]) -> Option<usize> {
        let mut known = Vec::new();
        for at in of {
            let said = self.0[*at].post("/v3/maintenance/status", "{}").await?;
            known.push((*at, field(&said, "member_id")?, field(&said, "leader").unwrap_or_default()));
        }
        let leader = &known.first()?.2;
        known.iter().find(|(_, id, _)| id == leader).map(|(at, ..)| *at)
    }
}

impl Member {
    fn launch(number: usize, peers: &[u16], more: &[String]) -> Self {
        let port = free_port("127.0.0.1");
        let folder = std::env::temp_dir().join(format!("ylock-etcd-{}", ylock_core::Owner::new()));
        std::fs::create_dir_all(&folder).unwrap();
        let cluster: Vec<_> =
            peers.iter().enumerate().map(|(at, port)| format!("m{at}=http://127.0.0.1:{port}")).collect();
        let (own, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{}", peers[number]));
        let server = std::env::var("YLOCK_TEST_ETCD_PROGRAM")
            .expect("YLOCK_TEST_ETCD_PROGRAM names the server's program: run `cargo xtask test etcd`");
        let mut program = Command::new(server);
        program
            .arg(format!("--name=m{number}"))
            .arg(format!("--data-dir={}/data", folder.display()))
            .args([format!("--listen-client-urls={own}"), format!("--advertise-client-urls={own}")])
            .args([format!("--listen-peer-urls={peer}"), format!("--initial-advertise-peer-urls={peer}")])
            .arg(format!("--initial-cluster={}", cluster.join(",")))
            .args(["--initial-cluster-state=new", "--log-level=error", "--unsafe-no-fsync"])
            .args(more.iter().map(|argument| argument.replace("{own}", &own)));
        let child = spawn(&mut program);
        Self { port, peer: peers[number], folder, program, child }
    }

    pub(crate) fn host(&self) -> Host {
        Host::new("127.0.0.1", self.port)
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// On its old port, with what is on its disk.
    pub(crate) async fn start_again(&mut self) {
        self.child = spawn(&mut self.program);
        self.until_it_serves().await;
    }

    /// Stops its process, as a machine does that hangs.
    pub(crate) fn freeze(&self) {
        own_servers::signal(&self.child, "STOP");
    }

    pub(crate) fn thaw(&self) {
        own_servers::signal(&self.child, "CONT");
    }

    async fn until_it_serves(&self) {
        until("the member serves", async || {
            self.ask("GET /health HTTP/1.0\r\n\r\n")
                .await
                .is_some_and(|said| said.contains("\"health\":\"true\""))
        })
        .await;
    }

    /// Asks the gateway to etcd's API that speaks JSON.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Option<String> {
        let length = body.len();
        self.ask(&format!("POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}")).await
    }

    async fn ask(&self, request: &str) -> Option<String> {
        let asking = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.ok()?;
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await.ok()?;
            Some(text)
        };
        tokio::time::timeout(super::LEASE, asking).await.ok().flatten()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // It may stand still, and have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn spawn(program: &mut Command) -> Child {
    program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("etcd starts")
}

/// Returns the value of a field of an answer in JSON: a number, which may be in quotes, or a text.
pub(crate) fn field(json: &str, name: &str) -> Option<String> {
    let rest = json.split(&format!("\"{name}\":")).nth(1)?;
    let rest = rest.trim_start_matches('"');
    Some(rest.split(['"', ',', '}']).next()?.to_owned())
}

/// Returns what JSON has in the place of bytes.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number =
            three.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * at) & 63) as usize];
            text.push(if at > three.len() { '=' } else { char::from(letter) });
        }
    }
    text
}
