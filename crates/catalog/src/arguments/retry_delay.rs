//! `x-retry-delay`: milliseconds, or a table of `initial`, `factor`, `cap` and `jitter`.

use super::settings::Said;
use model::table::{Table, Value};
use model::{DelayedRetry, LONGEST_MS, LONGEST_RETRY_MS, RetryDelay, Returned};

/// By how much a delay grows if nothing is said, in thousandths.
const FACTOR: u32 = 2000;

/// The largest factor.
const LARGEST_FACTOR: f64 = 1000.0;

/// How long a delay may become if nothing is said, in milliseconds.
const CAP_MS: u64 = 3_600_000;

/// Reads the argument. A number is a delay that is always the same.
///
/// # Errors
/// What is wrong with it, as an Erlang term like RabbitMQ's.
pub fn retry_delay(value: &Value) -> Result<RetryDelay, String> {
    let Value::Table(table) = value else {
        let initial_ms = milliseconds(value)?;
        return Ok(RetryDelay {
            initial_ms,
            factor: 1000,
            cap_ms: initial_ms,
            jitter: 0,
        });
    };
    let known = [&b"initial"[..], b"factor", b"cap", b"jitter"];
    if let Some((name, _)) = table.iter().find(|(name, _)| !known.contains(name)) {
        return Err(format!("{{unknown_key,{}}}", String::from_utf8_lossy(name)));
    }
    let initial_ms = match table.get("initial") {
        Some(value) => milliseconds(value)?,
        None => return Err("initial_missing".into()),
    };
    let cap_ms = match table.get("cap") {
        Some(value) => milliseconds(value)?,
        None => CAP_MS.max(initial_ms),
    };
    if cap_ms < initial_ms {
        return Err("cap_below_initial".into());
    }
    Ok(RetryDelay {
        initial_ms,
        factor: factor(table)?,
        cap_ms,
        jitter: jitter(table)?,
    })
}

/// What `x-delayed-retry-type`, `-min` and `-max` say together. As in RabbitMQ nothing waits without a least delay, and without a
/// greatest one it never grows.
pub(super) fn delayed_retry(said: &Said<'_>) -> Option<DelayedRetry> {
    let of = match said.ruled_text()? {
        "all" => Returned::All,
        "failed" => Returned::Failed,
        "returned" => Returned::GivenBack,
        _ => return None,
    };
    let least_of = |name| said.of(name)?.least(LONGEST_MS);
    let least_ms = least_of("x-delayed-retry-min")?;
    Some(DelayedRetry {
        of,
        least_ms,
        most_ms: least_of("x-delayed-retry-max").unwrap_or(least_ms),
    })
}

fn milliseconds(value: &Value) -> Result<u64, String> {
    match value.as_integer() {
        None => Err(format!("{{unacceptable_type,{}}}", value.type_name())),
        Some(it) if it < 0 => Err(format!("{{value_negative,{it}}}")),
        Some(it) if it.cast_unsigned() > LONGEST_RETRY_MS => Err(format!("{{value_too_large,{it}}}")),
        Some(it) => Ok(it.cast_unsigned()),
    }
}

/// A number from 1 to 1000; kept in thousandths, so that equal declarations are equal.
fn factor(table: &Table) -> Result<u32, String> {
    let factor = match table.get("factor") {
        None => return Ok(FACTOR),
        Some(Value::Float(it)) => f64::from(*it),
        Some(Value::Double(it)) => *it,
        Some(value) => match value.as_integer() {
            Some(it) => it as f64,
            None => return Err(format!("{{unacceptable_type,{}}}", value.type_name())),
        },
    };
    if (1.0..=LARGEST_FACTOR).contains(&factor) {
        Ok((factor * 1000.0).round() as u32)
    } else {
        Err("factor_not_from_1_to_1000".into())
    }
}

/// Percent.
fn jitter(table: &Table) -> Result<u8, String> {
    let Some(value) = table.get("jitter") else {
        return Ok(0);
    };
    match value.as_integer() {
        None => Err(format!("{{unacceptable_type,{}}}", value.type_name())),
        Some(it) => u8::try_from(it)
            .ok()
            .filter(|it| *it <= 100)
            .ok_or_else(|| "jitter_not_from_0_to_100".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: Table) -> Result<RetryDelay, String> {
        retry_delay(&Value::Table(table))
    }

    #[test]
    fn a_number_is_a_delay_that_is_always_the_same() {
        let delay = retry_delay(&Value::SignedInt(500)).unwrap();
        assert_eq!((delay.delay_ms(1, 0), delay.delay_ms(9, 3)), (500, 500));
    }

    #[test]
    fn a_table_says_how_the_delay_grows() {
        let table = Table::new()
            .with("initial", 100)
            .with("factor", Value::Double(1.5))
            .with("cap", 1000)
            .with("jitter", 10);
        let delay = read(table).unwrap();
        assert_eq!((delay.factor, delay.cap_ms, delay.jitter), (1500, 1000, 10));
        let plain = read(Table::new().with("initial", 100)).unwrap();
        assert_eq!((plain.factor, plain.cap_ms, plain.jitter), (2000, 3_600_000, 0));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let initial = || Table::new().with("initial", 100);
        let refused = [
            (read(Table::new()), "initial_missing"),
            (read(initial().with("cap", 99)), "cap_below_initial"),
            (read(initial().with("caps", 99)), "{unknown_key,caps}"),
            (read(initial().with("factor", 0)), "factor_not_from_1_to_1000"),
            (
                read(initial().with("factor", Value::Double(f64::NAN))),
                "factor_not_from_1_to_1000",
            ),
            (read(initial().with("jitter", 101)), "jitter_not_from_0_to_100"),
            (retry_delay(&Value::SignedInt(-1)), "{value_negative,-1}"),
            (
                retry_delay(&Value::Long(86_400_001)),
                "{value_too_large,86400001}",
            ),
            (retry_delay(&Value::Bool(true)), "{unacceptable_type,bool}"),
        ];
        for (read, reason) in refused {
            assert_eq!(read.unwrap_err(), reason);
        }
    }
}
