//! What tells a semaphore from a lock of the same name: the owner by which its clients read that name.

use crate::client_name::ClientName;
use crate::engine::Holder;
use crate::error::{Error, ErrorKind};
use crate::key::Key;
use crate::owner::Owner;

/// How the owner begins; the number of permits follows.
const OWNER: [u8; 12] = *b"ylock permit";

/// Returns the owner by which clients read the name of a semaphore with so many permits.
pub(crate) fn owner_of(permits: u32) -> Owner {
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(&OWNER);
    bytes[12..].copy_from_slice(&permits.to_be_bytes());
    Owner::from_bytes(bytes)
}

/// Returns how many permits a reader of the name counts on, if it is there for a permit.
pub(crate) fn permits_of(owner: Owner) -> Option<u32> {
    let bytes = owner.to_bytes();
    let number = bytes.strip_prefix(&OWNER)?;
    Some(u32::from_be_bytes(number.try_into().ok()?))
}

/// Returns the error for a caller that uses this name as a lock, if one of these holders has it as a semaphore.
pub(crate) fn found(key: &Key, holders: &[Holder]) -> Option<Error> {
    let found = holders.iter().find_map(|holder| Some((permits_of(holder.owner)?, holder)));
    found.map(|(permits, holder)| is_semaphore(key, &holder.client, permits))
}

/// Returns the error for a caller that uses this name as a lock.
pub(crate) fn is_semaphore(key: &Key, client: &ClientName, permits: u32) -> Error {
    used_otherwise(key, client, &format!("as a semaphore of {permits} permits, and not as a lock"))
}

/// Returns the error for a caller that uses a name otherwise than a client does.
pub(crate) fn used_otherwise(key: &Key, client: &ClientName, used: &str) -> Error {
    let message = format!("the client {client} uses this name {used}: give one of them another name");
    Error::new(ErrorKind::Invalid, message).with_key(key)
}
