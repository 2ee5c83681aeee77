//! What a command answers, in the form that its user asked for.

mod csv;
mod inspect;
mod json;
mod pretty;
pub mod table;
mod term;

use crate::failure::{Failure, USAGE};
use crate::line::CommandLine;
use serde_json::Value;

pub use term::term;

/// What a command has to tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Nothing: it is done.
    Done,
    /// A text for people; programs get the value instead.
    Told(String, Value),
    /// A list.
    Rows(Rows),
}

impl Output {
    /// A text that programs get as a string.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Told(text.clone(), Value::String(text))
    }
}

/// A list of things with the same columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Their names.
    pub columns: Vec<String>,
    /// A value for each column.
    pub rows: Vec<Vec<Value>>,
    /// The form if the user names none.
    pub form: Form,
}

/// A form of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Lines with tabs between the columns.
    #[default]
    Table,
    /// A frame around each row.
    Pretty,
    /// A JSON document.
    Json,
    /// A JSON document a line.
    JsonStream,
    /// Comma-separated values.
    Csv,
    /// Erlang's terms.
    Erlang,
    /// Elixir's terms.
    Inspect,
}

/// The names of all forms, for completion.
pub const FORMS: [(&str, Form); 9] = [
    ("table", Form::Table),
    ("pretty_table", Form::Pretty),
    ("json", Form::Json),
    ("json_stream", Form::JsonStream),
    ("csv", Form::Csv),
    ("erlang", Form::Erlang),
    ("string", Form::Table),
    ("report", Form::Table),
    ("inspect", Form::Inspect),
];

/// The form that was asked for, if one was.
///
/// # Errors
/// There is no such form.
pub fn form(line: &CommandLine) -> Result<Option<Form>, Failure> {
    let Some(name) = line.value("formatter") else {
        return Ok(None);
    };
    match FORMS.iter().find(|(known, _)| *known == name) {
        Some((_, form)) => Ok(Some(*form)),
        None => {
            let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
            let text = format!(
                "Error: unknown formatter '{name}'. Supported formatters: {}",
                names.join(", ")
            );
            Err(Failure::plain(USAGE, text))
        }
    }
}

/// The text for standard output; empty if there is nothing to say.
pub fn render(output: &Output, form: Option<Form>, line: &CommandLine) -> String {
    let headers = !line.has("silent") && !line.has("no-table-headers");
    match output {
        Output::Done => match form {
            Some(Form::Json) => "{\"result\":\"ok\"}\n".into(),
            _ => String::new(),
        },
        Output::Told(text, value) => match form {
            Some(Form::Json | Form::JsonStream) => format!("{value}\n"),
            Some(Form::Erlang) => format!("{}\n", term(value)),
            Some(Form::Inspect) => format!("{}\n", inspect::value(value)),
            _ if text.is_empty() => String::new(),
            _ => format!("{}\n", text.trim_end_matches('\n')),
        },
        Output::Rows(rows) => match form.unwrap_or(rows.form) {
            Form::Table => table::render(rows, headers),
            Form::Pretty => pretty::render(rows),
            Form::Json => json::render(rows),
            Form::JsonStream => json::stream(rows),
            Form::Csv => csv::render(rows, headers),
            Form::Erlang => term::rows(rows),
            Form::Inspect => inspect::rows(rows),
        },
    }
}
