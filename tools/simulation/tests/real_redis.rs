//! The simulated Redis server and the real one get the same commands and scripts, and answer alike.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use redis::Value;
use ylock_simulation::chance::Chance;
use ylock_simulation::faults::Plan;
use ylock_simulation::redis::Server;
use ylock_simulation::world::World;

const COMMANDS: u64 = 10_000;
/// Longer than the real server takes for a command.
const A_MOMENT: Duration = Duration::from_millis(100);

/// The scripts through which commands come, as those of the engine do; and what Lua makes of values.
const CALL: &str = "return redis.call(unpack(ARGV))";
const VALUES: [&str; 14] = [
    "return 1.9",
    "return -1.9",
    "return {1, 2, nil, 4}",
    "return {true, 'a', {2, {3}}}",
    "return {false, 'a'}",
    "return nil",
    "return string.format('%.0f', 1.7e15 + 0.5)",
    "return 1700000000000000 .. ''",
    "return redis.call('TIME')[1] * 0",
    "return {tonumber('12 '), tonumber('-')}",
    "return math.floor(1700000000123456 / 1000)",
    "return redis.call('HGET', KEYS[1], 'nothing') == false",
    "local words = {} for word in string.gmatch('a  b c', '%S+') do words[#words + 1] = word end return words",
    "return {string.byte('a', 2) or 1, string.sub('h:x', 3), #ARGV, KEYS[1]}",
];

trait Ask {
    fn ask(&mut self, words: &[&[u8]]) -> Value;

    /// Lets this time pass.
    fn wait(&mut self, time: Duration);
}

struct Real(TcpStream);

impl Ask for Real {
    fn ask(&mut self, words: &[&[u8]]) -> Value {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        self.0.write_all(&command.get_packed_command()).unwrap();
        let mut bytes = Vec::new();
        loop {
            let mut some = [0; 4096];
            let length = self.0.read(&mut some).unwrap();
            assert!(length > 0, "the server closed the connection");
            bytes.extend(&some[..length]);
            if let Ok(value) = redis::parse_redis_value(&bytes) {
                return value;
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

struct Simulated {
    world: std::sync::Arc<World>,
    server: std::sync::Arc<Server>,
}

impl Ask for Simulated {
    fn ask(&mut self, words: &[&[u8]]) -> Value {
        redis::parse_redis_value(&self.server.answer(words)).unwrap()
    }

    fn wait(&mut self, time: Duration) {
        let until = self.world.now() + u64::try_from(time.as_nanos()).unwrap();
        self.world.run(until, || false);
    }
}

fn real() -> Real {
    let address = std::env::var("YLOCK_TEST_REDIS").expect("YLOCK_TEST_REDIS");
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    Real(stream)
}

fn simulated() -> Simulated {
    let (world, mut chance) = (World::new(false), Chance::new(1));
    let weather = Plan::new(&[], &mut chance).weather(&mut chance);
    let server = Server::start(&world, weather, 1.0, chance, None, false);
    Simulated { world, server }
}

/// Errors in whatever words, and lists that have no order in theirs.
fn comparable(value: Value, is_unordered: bool) -> String {
    match value {
        Value::ServerError(_) => "an error".to_owned(),
        Value::Array(values) if is_unordered => {
            let mut pairs: Vec<_> = values.chunks(2).map(|pair| format!("{pair:?}")).collect();
            pairs.sort();
            format!("{pairs:?}")
        }
        value => format!("{value:?}"),
    }
}

fn seconds(of: &mut dyn Ask) -> i64 {
    let Value::Array(time) = of.ask(&[b"TIME"]) else { panic!("no time") };
    redis::from_redis_value(time[0].clone()).unwrap()
}

/// One step: a command in a script, with the end of what it stores by the server's own clock.
fn step(server: &mut dyn Ask, group: &str, chance: &mut Chance) -> (String, String) {
    let key = format!("{group}:{}", chance.below(4));
    let mut field = || format!("{}", chance.below(6));
    let (one, other) = (field(), field());
    let value = chance.below(100).to_string();
    let kind = chance.below(9);
    let soon = seconds(server) * 1_000 + [-1_000, 100_000][chance.below(2) as usize];
    let soon = soon.to_string();
    let words: Vec<&str> = match kind {
        0 | 1 => vec!["HSET", &key, &one, &value, &other, "x"],
        2 => vec!["HDEL", &key, &one, &other],
        3 => vec!["HGET", &key, &one],
        4 => vec!["HMGET", &key, &one, &other],
        5 => vec!["HGETALL", &key],
        6 => vec!["PEXPIREAT", &key, &soon],
        7 => vec!["HSET", &key, &one],
        _ => vec!["PUBSUB", "NUMSUB", &key],
    };
    let mut command = vec!["EVAL", CALL, "1", &key];
    command.extend(&words);
    let command: Vec<_> = command.into_iter().map(str::as_bytes).collect();
    // The names of all keys differ between runs, and are told only by the command that counts listeners.
    let what = if kind == 6 { "PEXPIREAT".to_owned() } else { words.join(" ") };
    (what, comparable(server.ask(&command), kind == 5))
}

fn all_steps(server: &mut dyn Ask, group: &str) -> Vec<(String, String)> {
    let mut chance = Chance::new(7);
    let mut steps: Vec<_> = (0..COMMANDS).map(|_| step(server, group, &mut chance)).collect();
    steps.extend(VALUES.iter().map(|text| {
        let value = server.ask(&[b"EVAL", text.as_bytes(), b"1", b"key", b"one", b"two"]);
        ((*text).to_owned(), comparable(value, false))
    }));
    steps.extend(walks(server, group));
    steps.extend(ends(server, group));
    steps
}

/// Walks over the keys by these patterns, page by page. The real server has keys of others, too.
fn walks(server: &mut dyn Ask, group: &str) -> Vec<(String, String)> {
    let walk = "local at, found, all = '0', {}, {} \
                repeat local page = redis.call('SCAN', at, 'MATCH', ARGV[1], 'COUNT', 3, 'TYPE', ARGV[2]) at = page[1] \
                for _, key in ipairs(page[2]) do found[string.sub(key, -1)] = true end until at == '0' \
                for key in pairs(found) do all[#all + 1] = key end table.sort(all) return all";
    for number in 0..4 {
        let set = "return redis.call('HSET', KEYS[1], 'a', 1)";
        server.ask(&[b"EVAL", set.as_bytes(), b"1", format!("{group}:{number}").as_bytes()]);
    }
    let mut walks = Vec::new();
    for end in [":*", ":?", ":[0-2]", ":[^0-2]", ":[13]", ":[2-0]", ":\\*", ":1*", "*2", ":[\\]3]", ":"] {
        for kind in ["hash", "string"] {
            let pattern = format!("{group}{end}");
            let words: [&[u8]; 6] =
                [b"EVAL", walk.as_bytes(), b"1", b"key", pattern.as_bytes(), kind.as_bytes()];
            walks.push((format!("SCAN {end} {kind}"), comparable(server.ask(&words), false)));
        }
    }
    for number in 0..4 {
        let delete = "return redis.call('HDEL', KEYS[1], 'a')";
        server.ask(&[b"EVAL", delete.as_bytes(), b"1", format!("{group}:{number}").as_bytes()]);
    }
    walks
}

/// What has ended is not there, and neither is its end: what is stored later stays.
fn ends(server: &mut dyn Ask, group: &str) -> Vec<(String, String)> {
    let key = format!("{group}:ends");
    let at = "local time = redis.call('TIME') redis.call('HSET', KEYS[1], 'a', 1) \
              return redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', time[1] * 1000 + time[2] / 1000 + 50))";
    let mut ask = |text: &str| {
        let value = server.ask(&[b"EVAL", text.as_bytes(), b"1", key.as_bytes()]);
        (text.to_owned(), comparable(value, false))
    };
    let mut all = vec![ask(at)];
    server.wait(A_MOMENT);
    let mut ask = |text: &str| {
        let value = server.ask(&[b"EVAL", text.as_bytes(), b"1", key.as_bytes()]);
        (text.to_owned(), comparable(value, false))
    };
    all.push(ask("return redis.call('HGET', KEYS[1], 'a')"));
    all.push(ask("return redis.call('HSET', KEYS[1], 'b', 2)"));
    server.wait(A_MOMENT);
    let value = server.ask(&[b"EVAL", b"return redis.call('HGETALL', KEYS[1])", b"1", key.as_bytes()]);
    all.push(("what is stored later".to_owned(), comparable(value, false)));
    all
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn ten_thousand_commands_have_the_same_answers() {
    let group = format!("simulated:{}", ylock_core::Owner::new());
    let (of_real, of_simulated) = (all_steps(&mut real(), &group), all_steps(&mut simulated(), &group));
    for (number, (real, simulated)) in of_real.iter().zip(&of_simulated).enumerate() {
        assert_eq!(real, simulated, "step {number}");
    }
    assert_eq!(of_real.len(), of_simulated.len());
}

/// Names of scripts, what a server says of those that it does not know, and the cache that a restart empties.
#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn scripts_have_the_same_names() {
    let [real, simulated]: [Vec<_>; 2] = [&mut real() as &mut dyn Ask, &mut simulated()].map(|server| {
        let name = server.ask(&[b"SCRIPT", b"LOAD", CALL.as_bytes()]);
        let unknown = server.ask(&[b"EVALSHA", b"0000000000000000000000000000000000000000", b"1", b"key"]);
        let known = server.ask(&[
            b"EVALSHA",
            redis::Script::new(CALL).get_hash().as_bytes(),
            b"1",
            b"key",
            b"HGET",
            b"key",
            b"x",
        ]);
        [name, unknown, known].map(|value| format!("{value:?}")).to_vec()
    });
    assert_eq!(real, simulated);
}
