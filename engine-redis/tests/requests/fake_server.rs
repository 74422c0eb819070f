//! A server that notes the scripts that it is asked to run, and gives the answers that a test has written down.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use redis::{Script, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, WriteHalf, duplex, split};
use tokio::time::Instant;
use ylock_core::Result;
use ylock_core::environment::SystemEnvironment;
use ylock_engine_redis::transport::{Stream, Transport};
use ylock_engine_redis::{RedisEngine, RedisOptions, scripts};

/// The last token, as a server says that lets an acquisition wait.
pub(crate) const LAST_TOKEN: u64 = 6;

/// The answer to one script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Granted,
    Queued,
    Busy,
    Number(i64),
    Lost(&'static str),
    /// The script says that the server throws away locks.
    Evicts,
    /// An error, in these words.
    Refused(&'static str),
    /// The connection ends without an answer.
    HangsUp,
}

/// A script that the server was asked to run.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) script: &'static str,
    pub(crate) arguments: Vec<String>,
    pub(crate) at: Instant,
}

/// The server; see the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeServer(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    answers: VecDeque<Answer>,
    asked: Vec<Asked>,
    /// True if it was asked to run more scripts than it has answers for.
    is_overasked: bool,
    /// The number of replicas that follow.
    replicas: i64,
    /// The version in which all is stored, if it is not that of this client.
    version: Option<&'static str>,
    /// The commands of which the next request gets no answer.
    unanswered: Vec<&'static str>,
    listener: Option<(String, Arc<tokio::sync::Mutex<WriteHalf<DuplexStream>>>)>,
}

impl FakeServer {
    pub(crate) fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let server = Self::default();
        server.0.lock().answers = answers.into_iter().collect();
        server
    }

    pub(crate) fn with_replicas(self, replicas: i64) -> Self {
        self.0.lock().replicas = replicas;
        self
    }

    pub(crate) fn of_version(self, version: &'static str) -> Self {
        self.0.lock().version = Some(version);
        self
    }

    pub(crate) fn leaving_unanswered(self, command: &'static str) -> Self {
        self.0.lock().unanswered.push(command);
        self
    }

    /// Returns whether this request gets no answer.
    fn ignores(&self, request: &[String]) -> bool {
        let unanswered = &mut self.0.lock().unanswered;
        let found = unanswered.iter().position(|command| *command == request[0]);
        found.map(|place| unanswered.remove(place)).is_some()
    }

    pub(crate) async fn engine(&self, options: RedisOptions) -> RedisEngine {
        self.connect(&options).await.expect("the server answers")
    }

    pub(crate) async fn connect(&self, options: &RedisOptions) -> Result<RedisEngine> {
        RedisEngine::over(Arc::new(self.clone()), SystemEnvironment::on_tokio_clock(), options).await
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        let state = self.0.lock();
        assert!(!state.is_overasked, "it was asked too often: {:?}", state.asked);
        state.asked.clone()
    }

    /// Returns the names of the scripts that it was asked to run.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.asked().iter().map(|asked| asked.script).collect()
    }

    /// Tells the client that listens something.
    pub(crate) async fn tell(&self, text: &str) {
        let (channel, writer) = self.0.lock().listener.clone().expect("a client listens");
        let parts = ["message", &channel, text].map(bulk).concat();
        writer.lock().await.write_all(format!(">3\r\n{parts}").as_bytes()).await.unwrap();
    }

    async fn serve(self, stream: DuplexStream) {
        let (mut reader, writer) = split(stream);
        let writer = Arc::new(tokio::sync::Mutex::new(writer));
        let mut unread = Vec::new();
        while let Ok(1..) = reader.read_buf(&mut unread).await {
            while let Some(request) = take_request(&mut unread) {
                if self.ignores(&request) {
                    continue;
                }
                if request[0] == "SUBSCRIBE" {
                    self.0.lock().listener = Some((request[1].clone(), Arc::clone(&writer)));
                }
                let Some(reply) = self.reply(&request) else { return };
                if writer.lock().await.write_all(reply.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Returns the reply to a request; nothing if the connection ends instead.
    fn reply(&self, request: &[String]) -> Option<String> {
        let mut state = self.0.lock();
        Some(match request[0].as_str() {
            "HELLO" => format!("%1\r\n{}{}", bulk("server"), bulk("redis")),
            "INFO" => bulk("redis_version:7.2.4\r\nrole:master\r\ncluster_enabled:0\r\nmaxmemory:0\r\n"),
            "SCRIPT" => bulk("loaded"),
            "HGET" => bulk(state.version.unwrap_or("1")),
            "TIME" => format!("*2\r\n{}{}", bulk("1700000000"), bulk("0")),
            "SUBSCRIBE" => format!(">3\r\n{}{}:1\r\n", bulk("subscribe"), bulk(&request[1])),
            "WAIT" => format!(":{}\r\n", state.replicas),
            "EVALSHA" => {
                let (script, arguments) = (name_of(&request[1]), request[4..].to_vec());
                state.asked.push(Asked { script, arguments, at: Instant::now() });
                let answer = state.answers.pop_front();
                state.is_overasked |= answer.is_none();
                return answer?.text();
            }
            _ => "+OK\r\n".to_owned(),
        })
    }
}

impl Answer {
    fn text(self) -> Option<String> {
        Some(match self {
            Self::Granted => format!("*3\r\n{}:7\r\n:0\r\n", bulk("granted")),
            Self::Queued => format!("*4\r\n{}:5\r\n:0\r\n:{LAST_TOKEN}\r\n", bulk("queued")),
            Self::Busy => format!("*1\r\n{}", bulk("busy")),
            Self::Number(number) => format!(":{number}\r\n"),
            Self::Lost(why) => format!("*2\r\n:0\r\n{}", bulk(why)),
            Self::Evicts => format!("*2\r\n{}{}", bulk("evicts"), bulk("allkeys-lru")),
            Self::Refused(words) => format!("-{words}\r\n"),
            Self::HangsUp => return None,
        })
    }
}

#[async_trait]
impl Transport for FakeServer {
    async fn open(&self, _: &str, _: u16) -> io::Result<Box<dyn Stream>> {
        let (ours, theirs) = duplex(1 << 16);
        tokio::spawn(self.clone().serve(theirs));
        Ok(Box::new(ours))
    }
}

fn name_of(hash: &str) -> &'static str {
    let all = [("acquire", scripts::ACQUIRE), ("release", scripts::RELEASE), ("renew", scripts::RENEW)];
    let known = all.into_iter().find(|(_, text)| Script::new(text).get_hash() == hash);
    known.map_or("another", |(name, _)| name)
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Takes a request that is there as a whole.
fn take_request(unread: &mut Vec<u8>) -> Option<Vec<String>> {
    // The driver's parser does not say how long a value was. Each request begins with `*`, so the first one ends before a `*` or at the end.
    let mut ends = (1..=unread.len()).filter(|end| unread.get(*end).is_none_or(|byte| *byte == b'*'));
    let whole = ends.find_map(|end| Some((end, redis::parse_redis_value(&unread[..end]).ok()?)));
    let (end, Value::Array(words)) = whole? else { return None };
    unread.drain(..end);
    Some(words.into_iter().map(|word| redis::from_redis_value(word).expect("a word")).collect())
}
