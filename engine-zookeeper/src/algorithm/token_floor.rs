//! The floor of the tokens, which all clients of one base share: it is stored in a node of its own.
//!
//! The tokens of clients with different floors would not grow from holder to holder. So the first client stores its floor, and each later
//! one uses what is stored, or is refused if it was told to use another one.
//!
//! The node also says in which version everything below the base is kept, because each client reads it before its first lock, and hears of its
//! changes: a version other than the first stands behind the floor, as in `0 version=2`.

use ylock_core::stored_version::{self, OtherVersion};
use ylock_core::{Error, ErrorKind, Result, Token};

use super::link::Link;
use super::store::{Fault, to_error};

/// The name of the node, below the base. No bucket has this name.
const NODE: &str = "token-floor";
/// The version of all that is below the base.
const VERSION: &str = "1";

/// Returns the path of the node in which the floor is stored.
pub(super) fn path(base: &str) -> String {
    format!("{base}/{NODE}")
}

/// Makes this client use the floor that is stored below the base; the first client stores its own, which is zero if no option says another
/// one.
pub(super) async fn agree(link: &Link, own: Option<i64>) -> Result<()> {
    let path = path(&link.base);
    let content = stored(link, &path, own.unwrap_or(0)).await.map_err(to_error)?;
    check_version(&path, &content).map_err(to_error)?;
    let stored = read(&path, &content)?;
    match own {
        Some(own) if own != stored => Err(differs(link, &path, own, stored)),
        _ => {
            link.floor.agree(Token::from_number(stored));
            Ok(())
        }
    }
}

/// Fails with [`OtherFloor`](Fault::OtherFloor) if another floor is stored by now than the one that this client has agreed upon, and with
/// [`OtherVersion`](Fault::OtherVersion) if another version is. Asks only if the node may have changed since this session looked.
///
/// A contender's token may be used if the session [knows the floor](Link::knows_floor) when it
/// hears of the transaction that made the contender: a change before that transaction would have
/// been told before.
pub(super) async fn confirm(link: &Link) -> Result<(), Fault> {
    if link.knows_floor() {
        return Ok(());
    }
    let (path, own) = (path(&link.base), link.floor.get().get());
    let content = stored(link, &path, own).await?;
    let checked = check_version(&path, &content).and_then(|()| match read(&path, &content) {
        Ok(stored) if stored == own => Ok(()),
        _ => Err(Fault::OtherFloor),
    });
    // Without a watch each acquisition looks again: the right floor may be put back.
    checked.inspect_err(|_| link.forget_floor())
}

/// Fails if clients of another version use what is below the base.
fn check_version(path: &str, content: &[u8]) -> Result<(), Fault> {
    let content = String::from_utf8_lossy(content);
    let found = stored_version::named_in(content.trim());
    if found == VERSION {
        return Ok(());
    }
    let base = path.strip_suffix(NODE).unwrap_or(path);
    let floor = content.split(' ').next().unwrap_or_default();
    let other = OtherVersion {
        of: &format!("what is below the node {}", base.trim_end_matches('/')),
        place: "path",
        found,
        own: VERSION,
        remedy: &format!(
            "remove the node {base}runs, which forgets the last runs of jobs, and set {path} to {floor:?}"
        ),
    };
    Err(Fault::OtherVersion(other.to_string()))
}

/// Stores the floor of this client again: the node was removed from outside. One that another client has stored meanwhile stays; a
/// different one fails the acquisitions of this client, see [`confirm`].
pub(super) async fn put_back(link: &Link) -> Result<(), Fault> {
    let path = path(&link.base);
    link.make(&path).await?;
    match link.write_content(&path, link.floor.get().to_string().as_bytes(), 0).await {
        Err(Fault::BadVersion) => Ok(()),
        written => written,
    }
}

/// Returns what is stored, and stores this client's floor if nothing is. Sets the watch of the session that tells of changes.
async fn stored(link: &Link, path: &str, own: i64) -> Result<Vec<u8>, Fault> {
    loop {
        let attempt = match link.read_and_watch(path).await {
            Ok((content, told)) if !content.is_empty() => {
                link.watch_floor(told);
                return Ok(content);
            }
            // Created, and not written to yet.
            Ok(_) => write_first(link, path, own).await,
            Err(Fault::NoNode) => link.make(path).await,
            Err(fault) => Err(fault),
        };
        match attempt {
            Ok(()) | Err(Fault::BadVersion | Fault::NoNode) => {}
            Err(fault) => return Err(fault),
        }
    }
}

/// Writes to the node, if it is still empty. Of clients that come at the same time the first write decides, and the others read it.
async fn write_first(link: &Link, path: &str, own: i64) -> Result<(), Fault> {
    match link.read(path).await? {
        node if node.content.is_empty() => {
            link.write_content(path, own.to_string().as_bytes(), node.version).await
        }
        _ => Ok(()),
    }
}

fn read(path: &str, content: &[u8]) -> Result<i64> {
    let text = String::from_utf8_lossy(content);
    text.trim().parse().ok().filter(|floor| *floor >= 0).ok_or_else(|| {
        let message =
            format!("the node {path} has {text:?} in it, and not the floor of the tokens, a number");
        Error::new(ErrorKind::Unexpected, message).with_engine(crate::NAME)
    })
}

fn differs(link: &Link, path: &str, own: i64, stored: i64) -> Error {
    let message = format!(
        "option token_floor={own}: the clients of {base} use {stored}, which is stored in the node {path}. Say token_floor={stored}, or leave \
         the option out. To raise the floor, stop all clients, remove that node, and start them with the new one; or use another path",
        base = link.base
    );
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
