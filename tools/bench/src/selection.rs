//! Which scenarios a run takes: by level, and by names, groups and patterns.

use crate::scenario::{Level, Scenario};

/// Takes the scenarios of the level and below that one of the patterns names; without patterns, all of the level and below.
///
/// # Errors
/// A pattern that takes nothing, with what to do.
pub fn select(scenarios: &[Scenario], patterns: &[String], level: Level) -> Result<Vec<Scenario>, String> {
    for pattern in patterns {
        let mut named = scenarios.iter().filter(|s| is_named(s, pattern)).peekable();
        if named.peek().is_none() {
            return Err(format!(
                "no scenario is named {pattern}; see leveret bench --list"
            ));
        }
        if named.all(|s| s.level > level) {
            let flag = if level == Level::Smoke {
                "leave --smoke out"
            } else {
                "add --all"
            };
            return Err(format!("{pattern} has longer scenarios only: {flag}"));
        }
    }
    let wanted = |s: &Scenario| patterns.is_empty() || patterns.iter().any(|p| is_named(s, p));
    Ok(scenarios
        .iter()
        .filter(|s| s.level <= level && wanted(s))
        .cloned()
        .collect())
}

/// By its name, its group, or the name of the sweep it is a point of (`S000-CONS` of `S000-CONS/10000@5`).
fn is_named(scenario: &Scenario, pattern: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    let sweep = scenario.name.split(['@', '/']).next().unwrap_or_default();
    [scenario.name.as_str(), scenario.group.as_str(), sweep]
        .iter()
        .any(|name| matches(&pattern, &name.to_ascii_lowercase()))
}

/// A pattern in which `*` stands for any text and `?` for one character.
fn matches(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.chars().next() else {
        return text.is_empty();
    };
    let tail = pattern.get(first.len_utf8()..).unwrap_or_default();
    if first == '*' {
        let mut starts = text.char_indices().map(|(i, _)| i).chain([text.len()]);
        return starts.any(|start| text.get(start..).is_some_and(|rest| matches(tail, rest)));
    }
    let mut rest = text.chars();
    match rest.next() {
        Some(c) if first == '?' || c == first => matches(tail, rest.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario_file::{self, EMBEDDED};

    fn embedded() -> Vec<Scenario> {
        scenario_file::read(EMBEDDED).unwrap()
    }

    fn names(patterns: &[&str], level: Level) -> Vec<String> {
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        select(&embedded(), &patterns, level)
            .unwrap()
            .into_iter()
            .map(|s| s.name)
            .collect()
    }

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        assert!(matches("t*", "t1") && matches("*", "") && matches("s0?0-*e", "s000-rate"));
        assert!(!matches("t", "t1") && !matches("t?", "t") && !matches("", "t"));
    }

    #[test]
    fn scenarios_are_picked_by_name_pattern_group_and_sweep() {
        assert_eq!(names(&["t1", "T4"], Level::Full), ["T1", "T4"]);
        assert_eq!(
            names(&["cost"], Level::Full),
            ["T1", "T2", "T3", "T4", "T5", "M16"]
        );
        assert_eq!(names(&["S000-RATE@1000"], Level::Full), ["S000-RATE@1000"]);
        assert_eq!(names(&["S000-CONS"], Level::Full).len(), 8);
        assert!(names(&["S000-*"], Level::Full).len() > 30);
    }

    #[test]
    fn a_level_holds_the_shorter_ones_too() {
        let count = |level| select(&embedded(), &[], level).unwrap().len();
        assert!(count(Level::Smoke) < count(Level::Full) && count(Level::Full) < count(Level::Long));
        assert_eq!(count(Level::Long), embedded().len());
    }

    #[test]
    fn a_pattern_without_a_scenario_says_what_to_do() {
        let said = |pattern: &str, level| select(&embedded(), &[pattern.to_owned()], level).unwrap_err();
        assert!(said("T9", Level::Full).contains("--list"));
        assert!(said("S002-4-LONG", Level::Full).contains("--all"));
        assert!(said("T3", Level::Smoke).contains("--smoke"));
    }
}
