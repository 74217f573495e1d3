//! A browser without a window, spoken to through pipes: messages of the `DevTools` protocol in JSON, each ended by a
//! zero byte. The program reads them from its descriptor 3 and answers on 4, which a shell lays to its input and
//! output.

use anyhow::{Context, Result, bail};
use base64::Engine;
use serde_json::{Value, json};
use siltstone_testbed::program::Owned;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Longer than that no answer takes.
const ANSWER_WAIT_MAX: Duration = Duration::from_mins(1);

/// A running browser with one page. It ends when this is dropped.
pub(super) struct Browser {
    _process: Owned,
    requests: ChildStdin,
    answers: Receiver<Value>,
    session: Option<String>,
    sent: u64,
    events: Vec<Value>,
}

impl Browser {
    /// Starts the program, which keeps what it must in `folder`.
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Self> {
        let child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >&2", "sh"])
            .arg(program)
            // The sandbox does not work for root nor in most containers, and the page is our own.
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.join("browser").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("the browser could not be started")?;
        let mut process = Owned(child);
        let requests = process.0.stdin.take().context("no pipe to the browser")?;
        let mut output = BufReader::new(process.0.stdout.take().context("no pipe from the browser")?);
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|bytes| bytes > 0) {
                message.pop();
                if serde_json::from_slice(&message).is_ok_and(|message| sender.send(message).is_err()) {
                    break;
                }
                message.clear();
            }
        });
        let mut browser = Self { _process: process, requests, answers, session: None, sent: 0, events: Vec::new() };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attached =
            browser.call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }))?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for room in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{room}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// Calls a method and waits for its result.
    ///
    /// # Errors
    /// If the browser ends, does not answer, or answers with an error.
    pub(super) fn call(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut line = message.to_string();
        line.push('\0');
        self.requests.write_all(line.as_bytes()).context("the browser has ended")?;
        loop {
            let mut answer = self.next()?;
            if answer["id"] != self.sent {
                self.events.push(answer);
            } else if answer["error"].is_null() {
                return Ok(answer["result"].take());
            } else {
                bail!("{method}: the browser says {}", answer["error"]);
            }
        }
    }

    /// Calls a method whose result is a picture or a file, and returns the bytes of it.
    pub(super) fn bytes(&mut self, method: &str, parameters: &Value) -> Result<Vec<u8>> {
        let result = self.call(method, parameters)?;
        let text = result["data"].as_str().context("the browser gave no picture")?;
        Ok(base64::engine::general_purpose::STANDARD.decode(text)?)
    }

    /// Opens a file and waits until it is shown.
    pub(super) fn open(&mut self, file: &Path) -> Result<()> {
        self.events.clear();
        self.call("Page.navigate", &json!({ "url": format!("file://{}", file.display()) }))?;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.next()?;
            self.events.push(event);
        }
        Ok(())
    }

    /// Returns what the browser has complained of, or loaded beside the page, since it was opened.
    pub(super) fn complaints(&self) -> Vec<String> {
        let complaint = |event: &Value| match event["method"].as_str()? {
            "Log.entryAdded" => Some(event["params"]["entry"]["text"].to_string()),
            "Runtime.exceptionThrown" => Some(event["params"]["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" => Some(event["params"]["args"].to_string()),
            "Network.requestWillBeSent" => {
                let address = event["params"]["request"]["url"].as_str()?;
                (!address.starts_with("file:") && !address.starts_with("data:")).then(|| format!("asks for {address}"))
            }
            _ => None,
        };
        self.events.iter().filter_map(complaint).collect()
    }

    fn next(&mut self) -> Result<Value> {
        self.answers.recv_timeout(ANSWER_WAIT_MAX).context("the browser has ended or does not answer")
    }
}
