//! `hoistway devices forget`: removes udev rules.

use anyhow::{Context, Result, bail};
use hoistway_machine::{Root, udev};

use crate::cli::ForgetArgs;
use crate::failure::Exit;
use crate::output::Out;

/// Removes the rules that `set --persist` wrote for a device.
pub fn run(root: &Root, args: &ForgetArgs, out: &mut Out) -> Result<Exit> {
    let device = super::find_device(root, &args.device)?;
    // A device without an identifier has no rule; the error says why.
    let id = udev::stable_id(&device)?;
    let rules = udev::own_rules(root, &device);
    if rules.is_empty() {
        bail!("there is no rule of ours for {} ({} {}) in /etc/udev/rules.d", device.name, id.what, id.value);
    }
    for path in rules {
        if args.dry_run {
            out.line(format_args!("would remove {}", path.display()))?;
            continue;
        }
        std::fs::remove_file(root.path(&path)).with_context(|| format!("{}: it cannot be removed", path.display()))?;
        out.line(format_args!("removed {}", path.display()))?;
    }
    if !args.dry_run {
        out.paragraph(
            0,
            &format!("The present settings stay until {} appears again, as at the next start.", device.name),
        )?;
    }
    Ok(Exit::Success)
}
