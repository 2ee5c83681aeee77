//! Metrics for others to collect.

use crate::cli::settings::Settings;
use crate::cli::values;
use crate::failure::Failure;
use crate::plan::{Datadog, Exporting};
use std::time::Duration;

pub fn exporting(settings: &Settings<'_>) -> Result<Exporting, Failure> {
    let exposed: Result<Vec<_>, Failure> =
        values::texts("exposed-metrics", &settings.list("exposed-metrics"))?
            .into_iter()
            .map(|(name, text)| match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok((name, number)),
                _ => Err(settings.refuse("exposed-metrics", &format!("{name}={text}"), "NAME=NUMBER")),
            })
            .collect();
    Ok(Exporting {
        tags: values::texts("metrics-tags", &settings.list("metrics-tags"))?,
        prefix: settings
            .text("metrics-prefix")
            .unwrap_or_else(|| "perftest_".to_owned()),
        arguments: settings.has("metrics-command-line-arguments"),
        client: settings.has("metrics-client"),
        processor: settings.has("metrics-processor"),
        memory: settings.has("metrics-jvm-memory"),
        threads: settings.has("metrics-jvm-thread"),
        exposed: exposed?,
        prometheus: prometheus(settings)?,
        datadog: datadog(settings)?,
    })
}

fn prometheus(settings: &Settings<'_>) -> Result<Option<(u16, String)>, Failure> {
    let port = settings.whole("metrics-prometheus-port", 8080, 0..=u16::MAX)?;
    let path = settings
        .text("metrics-prometheus-endpoint")
        .unwrap_or_else(|| "/metrics".to_owned());
    let path = if path.starts_with('/') {
        path
    } else {
        format!("/{path}")
    };
    Ok(settings.has("metrics-prometheus").then_some((port, path)))
}

fn datadog(settings: &Settings<'_>) -> Result<Option<Datadog>, Failure> {
    if !settings.has("metrics-datadog") {
        return Ok(None);
    }
    let Some(api_key) = settings
        .text("metrics-datadog-api-key")
        .filter(|key| !key.is_empty())
    else {
        return Err(Failure::Usage(
            "--metrics-datadog needs a key: add --metrics-datadog-api-key KEY.".to_owned(),
        ));
    };
    let step = settings
        .seconds("metrics-datadog-step-size")?
        .unwrap_or(Duration::from_secs(10));
    if step.is_zero() {
        return Err(settings.refuse("metrics-datadog-step-size", "0", "a time in seconds, such as 10"));
    }
    Ok(Some(Datadog {
        api_key,
        application_key: settings.text("metrics-datadog-application-key"),
        step,
        host_tag: settings.text("metrics-datadog-host-tag"),
        descriptions: settings.has("metrics-datadog-descriptions"),
        uri: settings
            .text("metrics-datadog-uri")
            .unwrap_or_else(|| "https://app.datadoghq.com".to_owned()),
    }))
}
