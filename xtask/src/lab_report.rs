//! `cargo xtask lab-report FILE`: a report of `silt-lab` looked at in a real browser, without a window: on a phone and
//! on a desk, in light and in dark, folded and unfolded. Nothing may be wider than the page, written over something
//! else or cut off, loaded from elsewhere or complained of by the browser. Needs Chromium or Chrome; where there is
//! none it says so and checks nothing.

mod browser;

use anyhow::{Context, Result, ensure};
use browser::Browser;
use clap::Args;
use serde_json::{Value, json};
use siltstone_testbed::{install, workspace};
use std::fs;
use std::path::{Path, PathBuf};

/// Names under which the browser is installed.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Returns what is wrong with the page, as a list of sentences.
const CHECK: &str = include_str!("lab_report/check.js");

/// A picture is at most so high, in pixels of the page.
const PICTURE_HEIGHT_MAX: f64 = 2000.0;

#[derive(Args)]
pub(crate) struct Options {
    /// The page; without it the made-up report of the lab, in which every kind of plot is.
    file: Option<PathBuf>,
    /// Save pictures of it, and what a printer would get, into this folder.
    #[arg(long)]
    pictures: Option<PathBuf>,
}

/// View of the page: a window, and the reader's choice of colours.
struct View {
    name: &'static str,
    width: u32,
    height: u32,
    colours: &'static str,
    is_unfolded: bool,
}

const VIEWS: [View; 5] = [
    View { name: "phone", width: 360, height: 800, colours: "light", is_unfolded: false },
    View { name: "phone-dark-unfolded", width: 360, height: 800, colours: "dark", is_unfolded: true },
    View { name: "tablet", width: 768, height: 1024, colours: "light", is_unfolded: false },
    View { name: "desk", width: 1200, height: 900, colours: "light", is_unfolded: false },
    View { name: "desk-dark-unfolded", width: 1200, height: 900, colours: "dark", is_unfolded: true },
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let Some(program) = PROGRAMS.into_iter().find_map(install::find) else {
        eprintln!(
            "SKIPPED: the report was NOT checked in a browser, because neither Chromium nor Chrome is on the PATH."
        );
        eprintln!("Install one (on Debian: apt-get install chromium) and run this again.");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let file = match &options.file {
        Some(file) => file.clone(),
        None => made_up(folder.path())?,
    };
    let file = file.canonicalize().with_context(|| format!("there is no page {}", file.display()))?;
    let mut browser = Browser::start(&program, folder.path())?;
    let mut wrong = 0;
    for view in &VIEWS {
        let complaints = looked_at(&mut browser, &file, view)?;
        println!("{}, {} x {}: {} complaints", view.name, view.width, view.height, complaints.len());
        for complaint in &complaints {
            println!("  {complaint}");
        }
        wrong += complaints.len();
        if let Some(pictures) = &options.pictures {
            pictured(&mut browser, view, pictures)?;
        }
    }
    if let Some(pictures) = &options.pictures {
        let paper = json!({ "paperWidth": 8.27, "paperHeight": 11.69 });
        fs::write(pictures.join("print.pdf"), browser.bytes("Page.printToPDF", &paper)?)?;
    }
    ensure!(wrong == 0, "{} has {wrong} faults in a browser", file.display());
    Ok(())
}

fn made_up(folder: &Path) -> Result<PathBuf> {
    let file = folder.join("report.html");
    let mut command = workspace::cargo();
    command.args(["run", "--quiet", "--package", "siltstone-lab", "--example", "report", "--"]).arg(&file);
    ensure!(command.status()?.success(), "the made-up report could not be made");
    Ok(file)
}

/// Opens the page and returns what is wrong with it.
fn looked_at(browser: &mut Browser, file: &Path, view: &View) -> Result<Vec<String>> {
    let is_phone = view.width < 600;
    // As a mobile browser it would widen its window to whatever does not fit, and nothing would be found too wide.
    let screen = json!({ "width": view.width, "height": view.height, "deviceScaleFactor": if is_phone { 2 } else { 1 }, "mobile": false });
    browser.call("Emulation.setDeviceMetricsOverride", &screen)?;
    let colours = json!({ "features": [{ "name": "prefers-color-scheme", "value": view.colours }] });
    browser.call("Emulation.setEmulatedMedia", &colours)?;
    browser.open(file)?;
    if view.is_unfolded {
        let unfold = "document.querySelectorAll('details').forEach(one => one.open = true)";
        browser.call("Runtime.evaluate", &json!({ "expression": unfold }))?;
    }
    let found = browser.call("Runtime.evaluate", &json!({ "expression": CHECK, "returnByValue": true }))?;
    let found =
        found["result"]["value"].as_array().with_context(|| format!("the check of the page failed: {found}"))?;
    let mut complaints: Vec<String> = found.iter().map(text).collect();
    complaints.extend(browser.complaints());
    Ok(complaints)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn pictured(browser: &mut Browser, view: &View, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let height = browser.call("Page.getLayoutMetrics", &json!({}))?["cssContentSize"]["height"].as_f64().unwrap_or(0.0);
    let mut top = 0.0;
    let mut number = 0;
    while top < height {
        let part = PICTURE_HEIGHT_MAX.min(height - top);
        let clip = json!({ "x": 0, "y": top, "width": view.width, "height": part, "scale": 1 });
        let parameters = json!({ "captureBeyondViewport": true, "clip": clip });
        let picture = browser.bytes("Page.captureScreenshot", &parameters)?;
        fs::write(folder.join(format!("{}-{number:02}.png", view.name)), picture)?;
        top += part;
        number += 1;
    }
    Ok(())
}
