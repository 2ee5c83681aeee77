//! The directory of a run: its plan, its results after every visit, and the reports.

use crate::failure::Failure;
use crate::plan::Plan;
use crate::report;
use crate::results::{FORMAT, Results};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

const RESULTS: &str = "results.json";
const PLAN: &str = "run.json";
const FAILURES: &str = "failures.log";

/// The directory.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// Makes a directory for a new run.
    ///
    /// # Errors
    /// It can't be written, or has results already.
    pub fn create(directory: &Path, plan: &Plan) -> Result<Self, Failure> {
        if directory.join(RESULTS).exists() {
            let shown = directory.display();
            return Err(Failure::Usage(format!(
                "{shown} has results already: go on with --resume {shown}, or name another directory"
            )));
        }
        let store = Self {
            directory: directory.to_owned(),
        };
        fs::create_dir_all(store.scratch()).map_err(|e| cannot_write(&store.scratch(), &e))?;
        let text = serde_json::to_string_pretty(plan).map_err(|e| Failure::Run(e.to_string()))?;
        store.write(PLAN, &text)?;
        Ok(store)
    }

    /// Opens the directory of an interrupted run.
    ///
    /// # Errors
    /// It isn't one.
    pub fn open(directory: &Path) -> Result<(Self, Plan, Results), Failure> {
        let path = directory.join(PLAN);
        let bad = |e: String| Failure::Usage(format!("{} is not a run to go on with: {e}", path.display()));
        let text = fs::read_to_string(&path).map_err(|e| bad(e.to_string()))?;
        let plan = Plan::read(&text).map_err(bad)?;
        let results = read_results(directory)?;
        if results.scenarios.len() != plan.scenarios.len() || results.targets.len() != plan.targets.len() {
            return Err(bad("its results belong to another run".to_owned()));
        }
        let store = Self {
            directory: directory.to_owned(),
        };
        Ok((store, plan, results))
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// For files that nobody needs later.
    pub fn scratch(&self) -> PathBuf {
        self.directory.join("scratch")
    }

    /// Saves what has been measured. The file is whole at every moment, whatever happens to us.
    ///
    /// # Errors
    /// The disk is full or the directory gone.
    pub fn save(&self, results: &Results) -> Result<(), Failure> {
        let text = serde_json::to_string(results).map_err(|e| Failure::Run(e.to_string()))?;
        self.write(RESULTS, &text)
    }

    /// Keeps what a load generator printed that failed.
    pub fn keep_failure(&self, heading: &str, printed: &str) {
        let append = || {
            let mut file = File::options()
                .create(true)
                .append(true)
                .open(self.directory.join(FAILURES))?;
            writeln!(file, "== {heading}\n{}\n", printed.trim_end())
        };
        // The reason stands in the results too; the log is a convenience that a full disk may take away.
        let _: std::io::Result<()> = append();
    }

    /// Takes away what a run left that never made a visit, and the directory if nothing else is in it.
    pub fn discard(self) {
        let _ = fs::remove_dir_all(self.scratch());
        let _ = fs::remove_file(self.directory.join(PLAN));
        let _ = fs::remove_dir(&self.directory);
    }

    /// Clears up, writes the reports and answers the files in the order of interest.
    ///
    /// # Errors
    /// The disk is full or the directory gone.
    pub fn finish(&self, results: &Results) -> Result<Vec<PathBuf>, Failure> {
        let _ = fs::remove_dir_all(self.scratch());
        self.save(results)?;
        let mut files = write_reports(&self.directory, results)?;
        files.push(self.directory.join(RESULTS));
        let failures = self.directory.join(FAILURES);
        files.extend(failures.exists().then_some(failures));
        Ok(files)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        replace(&self.directory.join(name), text)
    }
}

/// Writes the reports of results into a directory and answers the files.
///
/// # Errors
/// The disk is full or the directory can't be written.
pub fn write_reports(directory: &Path, results: &Results) -> Result<Vec<PathBuf>, Failure> {
    let plots = directory.join("plots");
    fs::create_dir_all(&plots).map_err(|e| cannot_write(&plots, &e))?;
    let (html, markdown) = (directory.join("report.html"), directory.join("report.md"));
    replace(&html, &report::html(results))?;
    replace(&markdown, &report::markdown(results))?;
    let drawn = report::svg(results);
    for (name, svg) in &drawn {
        replace(&plots.join(name), svg)?;
    }
    let mut files = vec![html, markdown];
    files.extend((!drawn.is_empty()).then_some(plots));
    Ok(files)
}

/// Reads the results of a run from its directory or the file itself.
///
/// # Errors
/// They can't be read, or have a format that isn't known.
pub fn read_results(place: &Path) -> Result<Results, Failure> {
    let path = if place.is_dir() {
        place.join(RESULTS)
    } else {
        place.to_owned()
    };
    let bad = |e: String| Failure::Usage(format!("{}: {e}", path.display()));
    let text = fs::read_to_string(&path).map_err(|e| bad(e.to_string()))?;
    let results: Results =
        serde_json::from_str(&text).map_err(|e| bad(format!("no results of a benchmark ({e})")))?;
    if results.format != FORMAT {
        return Err(bad(format!(
            "its format is {}, and only {FORMAT} is understood",
            results.format
        )));
    }
    Ok(results)
}

/// Writes a file beside the old one and puts it into its place.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .map_err(|e| cannot_write(path, &e))
}

fn cannot_write(path: &Path, e: &std::io::Error) -> Failure {
    Failure::Run(format!(
        "{} can't be written ({e}); make room, or choose another --output",
        path.display()
    ))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::cli::Options;
    use crate::results::{Machine, ScenarioResult, Target};
    use clap::Parser;

    fn plan() -> Plan {
        let line = ["bench", "--target", "a=amqp://h", "--scenarios", "T1"];
        Plan::of(&Options::try_parse_from(line).unwrap()).unwrap()
    }

    /// Results of one scenario without runs.
    pub fn results() -> Results {
        Results {
            format: FORMAT,
            title: "Test".to_owned(),
            started_unix_s: 1_800_000_000,
            finished_unix_s: None,
            machine: Machine::default(),
            targets: vec![Target {
                name: "a".to_owned(),
                ..Target::default()
            }],
            rounds: 1,
            seconds: 4.0,
            order: "A A".to_owned(),
            scenarios: vec![ScenarioResult {
                name: "T1".to_owned(),
                title: "one to one".to_owned(),
                group: "COST".to_owned(),
                fill: Vec::new(),
                flags: vec!["-x".to_owned()],
                plot: None,
                point: None,
                runs: Vec::new(),
            }],
        }
    }

    #[test]
    fn what_was_saved_is_there_again_when_the_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("run");
        let store = Store::create(&directory, &plan()).unwrap();
        store.save(&results()).unwrap();
        let (store, read, saved) = Store::open(&directory).unwrap();
        assert_eq!((read, saved), (plan(), results()));
        let said = Store::create(&directory, &plan()).unwrap_err().to_string();
        assert!(said.contains("--resume"), "{said}");
        let files = store.finish(&results()).unwrap();
        assert!(files.iter().any(|f| f.ends_with("report.md")));
        assert!(!store.scratch().exists());
    }

    #[test]
    fn a_directory_without_a_run_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            Store::open(folder.path())
                .unwrap_err()
                .to_string()
                .contains("not a run to go on with")
        );
        fs::write(folder.path().join(RESULTS), "{}").unwrap();
        assert!(
            read_results(folder.path())
                .unwrap_err()
                .to_string()
                .contains("no results")
        );
    }

    #[test]
    fn what_failing_loads_printed_is_kept_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path(), &plan()).unwrap();
        store.keep_failure("T1 a", "refused\n");
        store.keep_failure("T2 a", "gone\n");
        let text = fs::read_to_string(folder.path().join(FAILURES)).unwrap();
        assert_eq!(text, "== T1 a\nrefused\n\n== T2 a\ngone\n\n");
    }
}
