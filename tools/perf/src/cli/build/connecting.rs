//! How connections are made.

use super::MANY;
use crate::cli::settings::{Settings, parts};
use crate::cli::values;
use crate::failure::Failure;
use crate::plan::{Allocation, Connecting, OAuth2};

pub fn allocation(settings: &Settings<'_>) -> Result<Allocation, Failure> {
    match settings.text("connection-allocation").as_deref() {
        None | Some("random") => Ok(Allocation::Random),
        Some("round-robin") => Ok(Allocation::RoundRobin),
        Some(_) => Err(Failure::Usage(
            "--connection-allocation must one of random, round-robin".to_owned(),
        )),
    }
}

pub fn connecting(settings: &Settings<'_>) -> Result<Connecting, Failure> {
    let recovery = values::pause(
        settings
            .text("connection-recovery-interval")
            .as_deref()
            .unwrap_or("5"),
    )?;
    let buffer = |long: &str| -> Result<Option<usize>, Failure> {
        let size = settings.if_not_negative(long, i32::MAX.unsigned_abs())?;
        Ok(size.filter(|size| *size > 0).map(|size| size as usize))
    };
    Ok(Connecting {
        frame_max: settings.whole("framemax", 0, 0..=i32::MAX.unsigned_abs())?,
        heartbeat_s: settings.whole("heartbeat", 0, 0..=u16::MAX)?,
        send_buffer: buffer("tcp-send-buffer-size")?,
        receive_buffer: buffer("tcp-receive-buffer-size")?,
        no_delay: settings.boolean("tcp-no-delay", true)?,
        verify_peer: settings.has("use-default-ssl-context"),
        server_names: parts(&settings.text("server-name-indication").unwrap_or_default()),
        sasl_external: settings.has("sasl-external"),
        recovery: (!settings.has("disable-connection-recovery")).then_some(recovery),
        startup_timeout: settings
            .seconds("servers-startup-timeout")?
            .filter(|timeout| !timeout.is_zero()),
        servers_up_limit: settings
            .if_not_negative("servers-up-limit", MANY)?
            .filter(|limit| *limit > 0)
            .map(|limit| limit as usize),
        oauth2: oauth2(settings)?,
    })
}

fn oauth2(settings: &Settings<'_>) -> Result<Option<OAuth2>, Failure> {
    let Some(endpoint) = settings.text("oauth2-token-endpoint") else {
        return Ok(None);
    };
    if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
        return Err(settings.refuse(
            "oauth2-token-endpoint",
            &endpoint,
            "an address that begins with http:// or https://",
        ));
    }
    let mandatory = |short: &str, long: &str| {
        let text = || Failure::Usage(format!("-{short}/--{long} is mandatory when OAuth2 is used"));
        settings.text(long).ok_or_else(text)
    };
    Ok(Some(OAuth2 {
        endpoint,
        client_id: mandatory("o2id", "oauth2-client-id")?,
        client_secret: mandatory("o2sec", "oauth2-client-secret")?,
        grant_type: settings
            .text("oauth2-grant-type")
            .unwrap_or_else(|| "client_credentials".to_owned()),
        parameters: values::texts("oauth2-parameters", &settings.list("oauth2-parameters"))?,
    }))
}
