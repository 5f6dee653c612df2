//! Link flags of a Node-API library.

use std::env;
use std::path::PathBuf;

fn main() {
    napi_build::setup();
    if let Some(map) = map() {
        // Apart from `-Wl`, whose commas would split a path that has some.
        println!("cargo:rustc-cdylib-link-arg=-Xlinker");
        println!("cargo:rustc-cdylib-link-arg=-Map={}", map.display());
    }
}

/// Where the linker writes what it placed. `npm run check` reads there which functions the library has, for the
/// library itself is stripped. Builds for other targets go without: their linkers may not know the flag, and the check
/// is of this machine's build.
fn map() -> Option<PathBuf> {
    let value = |name| env::var(name).unwrap_or_default();
    let native = value("TARGET") == value("HOST") && value("CARGO_CFG_TARGET_OS") == "linux";
    if !native || value("PROFILE") != "release" {
        return None;
    }
    // Beside the library, one place whatever hash this script's own folder carries.
    let out = PathBuf::from(env::var_os("OUT_DIR")?);
    let build = out.ancestors().find(|folder| folder.ends_with("build"))?;
    build.parent().map(|profile| profile.join("aquila-node.map"))
}
