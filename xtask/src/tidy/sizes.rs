//! Files stay short enough to be read in one go.

use crate::findings::Findings;
use crate::sources::Source;

/// Above this a file is worth a second look.
const LINES_REMARK: usize = 600;
/// Above this it must be split.
const LINES_ERROR: usize = 1_000;

/// Endings of files that people write as code.
const CODE: [&str; 9] = ["rs", "py", "java", "go", "js", "mjs", "ts", "tsx", "sh"];

pub fn check(sources: &[Source]) -> Findings {
    let mut findings = Findings::default();
    for source in sources.iter().filter(|s| CODE.contains(&s.ending())) {
        let lines = source.text.lines().count();
        if lines > LINES_ERROR {
            findings.error(format!(
                "{}: {lines} lines; {LINES_ERROR} is the wall",
                source.path
            ));
        } else if lines > LINES_REMARK {
            findings.remark(format!(
                "{}: {lines} lines; look twice above {LINES_REMARK}",
                source.path
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> Source {
        Source {
            path: path.to_owned(),
            text: "x\n".repeat(lines),
        }
    }

    #[test]
    fn long_files_are_found() {
        let findings = check(&[
            file("a.rs", 600),
            file("b.rs", 601),
            file("c.py", 1_001),
            file("d.txt", 5_000),
        ]);
        assert_eq!(findings.remarks, ["b.rs: 601 lines; look twice above 600"]);
        assert_eq!(findings.errors, ["c.py: 1001 lines; 1000 is the wall"]);
    }
}
