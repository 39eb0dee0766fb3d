//! `hoistway devices forget`.

use anyhow::{Context, Result, bail};
use hoistway_machine::{Root, udev};

use crate::cli::ForgetArgs;
use crate::failure::Exit;
use crate::output::Out;

/// Removes the rules that `set --persist` has written for a device.
pub fn run(root: &Root, args: &ForgetArgs, out: &mut Out) -> Result<Exit> {
    let device = super::one(root, &args.device)?;
    // Whoever cannot be found again has no rule, and is told why.
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
        out.paragraph(0, &format!("What is set now stays until {} appears anew, as at the next start.", device.name))?;
    }
    Ok(Exit::Success)
}
