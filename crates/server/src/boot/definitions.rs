//! `load_definitions`: files of definitions that are imported before the doors open.

use broker::Broker;
use std::fs;
use std::path::{Path, PathBuf};

/// Imports a file, or all files of a directory in the order of their names (RabbitMQ's way). What exists stays as it is, so this
/// may happen at every start.
///
/// # Errors
/// A file can't be read, or an object in it is refused; the text names both. The node is not to start then.
pub fn load(broker: &Broker, path: &Path) -> Result<(), String> {
    for file in files(path)? {
        let text = fs::read(&file).map_err(|error| unreadable(&file, &error))?;
        management::import(&broker.administrator(broker::THE_NODE), &text, None, None)
            .map_err(|reason| format!("load_definitions: {}: {reason}", file.display()))?;
        tracing::info!(area = "boot", "definitions of {} are imported", file.display());
    }
    Ok(())
}

fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(|error| unreadable(path, &error))?.path();
        if file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("load_definitions: {} can't be read: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_directory_are_imported_in_order_and_mistakes_name_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let (data, defined) = (dir.path().join("data"), dir.path().join("defined"));
        fs::create_dir_all(&data).unwrap();
        fs::create_dir_all(&defined).unwrap();
        let broker = Broker::open(broker::Options {
            create_defaults: false,
            ..broker::Options::new(&data)
        })
        .unwrap();
        fs::write(
            defined.join("2.json"),
            r#"{"queues": [{"vhost": "shop", "name": "q", "durable": true}]}"#,
        )
        .unwrap();
        fs::write(
            defined.join("1.json"),
            r#"{"vhosts": [{"name": "shop"}], "users": [{"name": "jane", "password": "x", "tags": ""}]}"#,
        )
        .unwrap();
        load(&broker, &defined).unwrap();
        broker.create_defaults().unwrap();
        let view = broker.view();
        assert!(
            view.queue("shop", "q").is_some() && view.user("jane").is_some() && view.user("guest").is_none()
        );
        fs::write(
            defined.join("3.json"),
            r#"{"queues": [{"vhost": "nope", "name": "q"}]}"#,
        )
        .unwrap();
        let error = load(&broker, &defined).unwrap_err();
        assert!(
            error.contains("3.json: queues: 'q': ") && error.contains("nope"),
            "{error}"
        );
        assert!(
            load(&broker, &dir.path().join("none"))
                .unwrap_err()
                .contains("can't be read")
        );
        broker.close();
    }
}
