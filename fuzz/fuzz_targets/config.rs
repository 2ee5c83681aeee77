//! Any text as a configuration file, or as RabbitMQ's `advanced.config`: it loads or is refused with a message, and never panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use server::config::{self, advanced, sources, syntax};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match advanced::text_of_file(text, Path::new("fuzz.config")) {
        Ok(read) => drop(config::load(read.settings)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let Ok(settings) = sources::text_of_file(text, Path::new("fuzz.conf")) else {
        return;
    };
    for setting in &settings {
        // A key's printed form is the same key.
        assert_eq!(
            syntax::Key::parse(&setting.key.to_string()).as_ref(),
            Some(&setting.key)
        );
    }
    match config::load(settings) {
        Ok(loaded) => assert!(loaded.warnings.iter().all(|warning| !warning.is_empty())),
        Err(errors) => assert!(!errors.is_empty() && errors.iter().all(|e| !e.to_string().is_empty())),
    }
});
