//! A broker follows what several nodes decide.

use super::Broker;
use crate::groups::catalog::Follower;
use catalog::shared::{Contents, Happened};
use std::sync::Weak;

/// Takes over what was decided.
pub struct CatalogFollower(pub Weak<Broker>);

impl Follower for CatalogFollower {
    fn happened(&self, happened: &[Happened]) {
        if let Some(broker) = self.0.upgrade() {
            broker.topology().take_over(happened);
        }
    }

    fn resumed(&self, contents: &Contents) {
        if let Some(broker) = self.0.upgrade() {
            broker.topology().reconcile(contents.view());
        }
    }
}
