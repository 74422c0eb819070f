//! What becomes of the last runs of jobs when no client is left.
#![cfg(target_os = "linux")]

mod folder;

use std::time::Duration;

use folder::Folder;
use ylock_core::engine::Engine;
use ylock_core::{ClientName, ErrorKind, JobRun, Key, Token};

const HOUR: Duration = Duration::from_secs(3600);

fn run(period: i64) -> JobRun {
    JobRun::begun(period, Some(Token::from_number(7)), 8, ClientName::stored("web-3"))
}

/// The first client clears the folder of all that belongs to clients. A run belongs to none: a job would be run again in its period.
#[tokio::test]
async fn the_first_client_of_a_folder_leaves_the_runs() {
    let (folder, key) = (Folder::new(), Key::new("jobs", "report").unwrap());
    let client = folder.client().await;
    assert!(client.store_run(&key, &run(1), HOUR).await.unwrap());
    drop(client);
    let next = folder.client().await;
    assert_eq!(next.last_run(&key).await.unwrap(), Some(run(1)));
    assert!(!next.store_run(&key, &run(0), HOUR).await.unwrap());
}

/// Those whose time is over go, also where no client asks for them any more; and others stay.
#[tokio::test]
async fn runs_that_are_not_kept_any_more_are_removed() {
    let folder = Folder::new();
    let (over, kept) = (Key::new("jobs", "x".repeat(1024)).unwrap(), Key::new("jobs", "report").unwrap());
    let client = folder.client().await;
    assert!(client.store_run(&over, &run(1), Duration::ZERO).await.unwrap());
    assert!(client.store_run(&kept, &run(1), HOUR).await.unwrap());
    assert_eq!(client.last_run(&over).await.unwrap(), None);
    let files = || std::fs::read_dir(folder.path().join("runs")).unwrap().count();
    assert_eq!(files(), 2);
    let next = folder.client().await;
    assert_eq!((files(), next.last_run(&kept).await.unwrap()), (1, Some(run(1))));
}

/// Another client would find none where this one has stored it, and run the job again.
#[tokio::test]
async fn a_run_is_neither_stored_nor_looked_for_where_no_other_client_finds_it() {
    for moved in ["", "runs"] {
        let (folder, key) = (Folder::new(), Key::new("jobs", "report").unwrap());
        let client = folder.client().await;
        std::fs::rename(folder.path().join(moved), folder.beside("moved")).unwrap();
        let errors = [
            client.store_run(&key, &run(1), HOUR).await.unwrap_err(),
            client.last_run(&key).await.unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.to_string().contains("was removed, moved")), "{errors:?}");
    }
}

#[tokio::test]
async fn a_damaged_file_of_a_run_is_an_error_that_names_it() {
    let (folder, key) = (Folder::new(), Key::new("jobs", "report").unwrap());
    let client = folder.client().await;
    assert!(client.store_run(&key, &run(1), HOUR).await.unwrap());
    let path = folder.path().join("runs/jobs=report");
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes.iter().position(|byte| *byte == b'w').expect("the name of the client");
    bytes[place] = b'v';
    std::fs::write(&path, bytes).unwrap();
    let error = client.last_run(&key).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected);
    let error = error.to_string();
    assert!(
        error.contains("runs/jobs=report is damaged") && error.contains("Which run of this job"),
        "{error}"
    );
}
