//! Link flags of a Node-API library.

fn main() {
    napi_build::setup();
}
