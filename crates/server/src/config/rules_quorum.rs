//! Where quorum queues and their members are placed: `queue_leader_locator` and
//! `quorum_queue.continuous_membership_reconciliation.*`.

use super::rules::{Checked, boolean};
use super::units::whole;
use super::{Config, Setting};

/// The time of a tick, in milliseconds.
pub(super) const TICK_MS: u64 = 100;

/// The longest time between two looks, in milliseconds: a week.
const LONGEST_MS: u64 = 7 * 24 * 3_600_000;

/// A cluster has no more nodes.
const MOST_MEMBERS: u64 = 32;

pub fn leader_locator(config: &mut Config, setting: &Setting) -> Checked {
    let locator = broker::Locator::from_name(&setting.value);
    config.queue_defaults.locator = locator.ok_or("client-local, balanced")?;
    Ok(())
}

pub fn rebalance_after_return(config: &mut Config, setting: &Setting) -> Checked {
    config.rebalances_after_return = boolean(setting)?;
    Ok(())
}

pub fn reconciles(config: &mut Config, setting: &Setting) -> Checked {
    config.reconciliation.is_enabled = boolean(setting)?;
    Ok(())
}

pub fn target_size(config: &mut Config, setting: &Setting) -> Checked {
    let size = whole(&setting.value, 1, MOST_MEMBERS).ok_or("a number of nodes, from 1 to 32")?;
    config.reconciliation.target_size = size as usize;
    Ok(())
}

pub fn interval(config: &mut Config, setting: &Setting) -> Checked {
    config.reconciliation.interval_ticks = ticks(setting)?;
    Ok(())
}

pub fn trigger_interval(config: &mut Config, setting: &Setting) -> Checked {
    config.reconciliation.trigger_ticks = ticks(setting)?;
    Ok(())
}

fn ticks(setting: &Setting) -> Checked<u32> {
    let ms = whole(&setting.value, 1, LONGEST_MS).ok_or("milliseconds, from 1 to 604800000")?;
    u32::try_from(ms.div_ceil(TICK_MS)).map_err(|_| "milliseconds, from 1 to 604800000")
}
