//! What the package is made of is there, and the service may read what the package gives it.

use std::path::Path;

const MANIFEST: &str = include_str!("../Cargo.toml");
const POSTINST: &str = include_str!("../../../packaging/debian/postinst");
const UNIT: &str = include_str!("../../../packaging/systemd/leveret.service");

#[test]
fn every_file_that_the_package_names_is_there() {
    let (_, package) = MANIFEST.split_once("[package.metadata.deb]").unwrap();
    let named: Vec<&str> = package
        .split('"')
        .filter(|text| text.starts_with("../../"))
        .collect();
    assert!(named.len() >= 4, "{named:?}");
    for path in named {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path.trim_end_matches("*.md"));
        assert!(path.exists(), "{}", path.display());
    }
}

#[test]
fn the_service_may_read_its_configuration() {
    assert!(MANIFEST.contains(r#""etc/leveret/leveret.conf", "640""#));
    assert!(UNIT.contains("User=leveret\n") && UNIT.contains("--config /etc/leveret\n"));
    assert!(
        POSTINST.contains("adduser --system --group") && POSTINST.contains("chgrp -R leveret /etc/leveret\n")
    );
}
