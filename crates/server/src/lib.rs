//! The process: command line, configuration, logs, boot and shutdown. *No logic*: nothing here decides what becomes
//! of a message, a connection or a permission, and no other crate reads a configuration key.
//!
//! Reading order: [`cli`], [`config`] (what can be set; `config/keys.rs` has every key), [`logs`], [`boot`]; and
//! [`cluster`], which starts several such processes.

pub mod boot;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod logs;
pub mod memory;
