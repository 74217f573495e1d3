//! The pages of `docs/guide/`, run as they are written: every command of a ```` ```console ```` block, in order, in a
//! sandbox, and what it prints compared with the page.
//!
//! ```text
//! $ command          run by bash, with standard error beside standard output
//! > more of it       further lines of the command
//! what it prints     `...` alone stands for any lines
//! ```
//! A comment `<!-- setup ... -->` holds commands that make what a page takes for granted. Blocks that need another
//! machine, or rights of root, are marked: ```` ```console not-run ````; how many there are is pinned below.
//!
//! Ids, times, sizes, counts of folders and the widths of columns differ from run to run, and are masked on both sides.
//! `SILT_GUIDE_WRITE=1 cargo test -p siltstone --test all guide::` writes what was printed into the pages instead:
//! look at the difference before you keep it.

use regex::Regex;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Blocks of all pages that are not run.
const NOT_RUN: usize = 6;
/// Folders that the pages name as if they stood at the root: they lie in the sandbox.
const FOLDERS: [&str; 6] = ["/backups", "/home/me", "/mnt/disk", "/restored", "/srv", "/var/lib"];
/// The port of the server on the pages.
const PORT: &str = "8010";
/// The machine's name on the pages.
const HOST: &str = "laptop";

/// The beginning of what the pages know as `silt`: a new repository's key costs little to open, or each command would
/// hash its password for a tenth of a second.
const WITH_QUICK_KEYS: &str = r#"#!/usr/bin/env bash
for word; do
    [ "$word" = init ] && set -- "$@" --kdf-memory 64K --kdf-passes 1 --kdf-lanes 1
done
"#;

/// A command of a page, and what the page says that it prints.
struct Step {
    command: String,
    printed: Vec<String>,
    /// The lines of the page that hold what it prints.
    lines: std::ops::Range<usize>,
}

struct Page {
    path: PathBuf,
    lines: Vec<String>,
    setup: String,
    steps: Vec<Step>,
    not_run: usize,
}

impl Page {
    fn read(path: PathBuf) -> Self {
        let lines: Vec<String> = fs::read_to_string(&path).expect("a page").lines().map(str::to_owned).collect();
        let mut page = Self { path, lines, setup: String::new(), steps: Vec::new(), not_run: 0 };
        let mut within = "";
        for (number, line) in page.lines.clone().iter().enumerate() {
            within = match (within, line.as_str()) {
                ("", "<!-- setup") => "setup",
                ("", "```console") => "console",
                ("", "```console not-run") => {
                    page.not_run += 1;
                    "other"
                }
                ("", line) if line.starts_with("```") => "other",
                ("setup", "-->") | ("console" | "other", "```") => "",
                ("setup", line) => {
                    page.setup.push_str(line);
                    page.setup.push('\n');
                    "setup"
                }
                ("console", line) => {
                    page.add(number, line);
                    "console"
                }
                (within, _) => within,
            };
        }
        assert_eq!(within, "", "{}: a block has no end", page.path.display());
        page
    }

    fn add(&mut self, number: usize, line: &str) {
        if let Some(command) = line.strip_prefix("$ ") {
            let lines = number + 1..number + 1;
            self.steps.push(Step { command: command.to_owned(), printed: Vec::new(), lines });
            return;
        }
        let step = self.steps.last_mut().unwrap_or_else(|| panic!("{line}: comes before a command"));
        if let Some(more) = line.strip_prefix('>').filter(|_| step.printed.is_empty()) {
            step.command.push('\n');
            step.command.push_str(more.strip_prefix(' ').unwrap_or(more));
            step.lines = number + 1..number + 1;
        } else {
            step.printed.push(line.to_owned());
            step.lines.end = number + 1;
        }
    }
}

/// Runs the commands of a page in one shell, and gives what each printed.
fn run(page: &Page) -> Vec<Vec<String>> {
    let sandbox = tempfile::tempdir().expect("a temporary folder");
    let root = sandbox.path().display().to_string();
    let port = free_port();
    for folder in FOLDERS.iter().copied().chain(["/bin", "/tmp"]) {
        fs::create_dir_all(format!("{root}{folder}")).expect("made");
    }
    let silt = format!("{root}/bin/silt");
    // What is written into the pages shows the costs that users meet.
    let keys = if is_written() { "#!/usr/bin/env bash\n" } else { WITH_QUICK_KEYS };
    fs::write(&silt, format!("{keys}exec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_silt"))).expect("written");
    fs::set_permissions(&silt, fs::Permissions::from_mode(0o755)).expect("may be run");
    let mut script = format!("{SOURCE}\n{}\n", placed(&page.setup, &root));
    for step in &page.steps {
        // The mark stands on a line of its own, whatever the command printed; the next one sees how that ended.
        let command = placed(&step.command, &root).replace(PORT, &port);
        writeln!(script, "guide_status=$?; printf '\\n{MARK}\\n'; (exit $guide_status)\n{command}").expect("written");
    }
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{script}")])
        .env_clear()
        .env("PATH", format!("{root}/bin:{}", std::env::var("PATH").expect("a path")))
        .env("HOME", format!("{root}/home/me"))
        .env("USER", "me")
        .env("LC_ALL", "C.UTF-8")
        .env("TMPDIR", format!("{root}/tmp"))
        .env("TZ", "UTC")
        .current_dir(format!("{root}/home/me"))
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let text = without_root(&String::from_utf8_lossy(&output.stdout), &root).replace(&port, PORT);
    let host = Regex::new(&format!(r"(?-u:\b){}(?-u:\b)", regex::escape(&host()))).expect("a pattern");
    let text = host.replace_all(&text, HOST);
    let printed: Vec<&str> = text.split(&format!("\n{MARK}\n")).collect();
    assert_eq!(printed.len(), page.steps.len() + 1, "{}: the shell ended early:\n{text}", page.path.display());
    assert!(printed[0].trim().is_empty(), "{}: its setup printed: {}", page.path.display(), printed[0]);
    printed[1..].iter().map(|text| text.trim_end_matches('\n').lines().map(str::to_owned).collect()).collect()
}

/// A text without the folder of the sandbox. It makes tables wider than they are on the page, which is undone.
fn without_root(text: &str, root: &str) -> String {
    let (blanks, dashes) = (" ".repeat(root.len()), "-".repeat(root.len()));
    let is_rule = |line: &str| line.len() > 8 && line.bytes().all(|byte| byte == b'-');
    let lines: Vec<&str> = text.lines().collect();
    let (mut rules, mut is_wide) = (0, false);
    let mut narrowed = String::with_capacity(text.len());
    for (at, line) in lines.iter().enumerate() {
        if rules == 0 && !is_rule(line) {
            // A table begins with its headings.
            is_wide = lines.get(at + 1).is_some_and(|next| is_rule(next)) && line.contains(&blanks);
        }
        let is_cut = is_wide && !line.starts_with(' ') && !line.contains(root);
        narrowed += &match line {
            line if is_rule(line) => {
                rules = (rules + 1) % 2;
                if is_wide { line.replacen(&dashes, "", 1) } else { (*line).to_owned() }
            }
            line if is_cut => line.replacen(&blanks, "", 1),
            line => line.replace(root, ""),
        };
        narrowed.push('\n');
    }
    narrowed
}

/// The name of the machine that the test runs on.
fn host() -> String {
    let name = Command::new("uname").arg("-n").output().expect("uname runs").stdout;
    String::from_utf8(name).expect("a name").trim().to_owned()
}

/// A port that nothing listens on just now.
fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port().to_string()
}

const MARK: &str = "-- the next command of the page --";

/// Files that every page finds: those of a person who works.
const SOURCE: &str = r#"
umask 022
mkdir -p work/letters photos
seq 1 3000 | sed 's/$/. The minutes of the meeting, as they were written down./' > work/minutes.txt
echo 'Dear Ms Kim, the parcel has come. Thank you!' > work/letters/kim.txt
seq 1 400 | sha256sum > work/figures.csv
noise() { awk -v seed=$1 -v count=$2 'BEGIN { srand(seed); while (count--) printf "%06x", rand() * 16777216 }'; }
noise 1 100000 > photos/summer.jpg
noise 2 50000 > photos/winter.jpg
cp photos/summer.jpg photos/best.jpg
find . -exec touch -d '2026-11-01 09:00:00' {} +
"#;

/// A text with the folders of the pages led into the sandbox.
fn placed(text: &str, root: &str) -> String {
    FOLDERS.iter().fold(text.to_owned(), |text, folder| text.replace(folder, &format!("{root}{folder}")))
}

/// A line without what differs from run to run.
fn masked(line: &str) -> String {
    // The tables of Unicode are not built in: digits and words are those of ASCII.
    let masks = [
        (r"(?-u:\b)([0-9a-f]{64}|[0-9a-f]{32}|[0-9a-f]{16}|[0-9a-f]{10}|[0-9a-f]{8})(?-u:\b)", "ID"),
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?([+-][0-9]{2}:[0-9]{2}|Z)?", "TIME"),
        (r"[0-9]+(\.[0-9]+)? ([KMGT]iB|B)(?-u:\b)", "SIZE"),
        (r"SIZE x [0-9]+, [0-9]+ lanes", "COST"),
        (r"[0-9]+ bytes?(?-u:\b)", "BYTES"),
        (r"(?-u:\b)in [0-9]+:[0-9]{2}(?-u:\b)", "in TIME"),
        (r"[0-9]+(\.[0-9]+)? times less", "N times less"),
        (r"^Dirs: +[0-9]+", "Dirs: N"),
        (r"[0-9]+ (kept|rejected|rewritten|skipped)(?-u:\b)", "N $1"),
        (r"[0-9]+ (chunk|container|object)s?(?-u:\b)", "N $1"),
        (r"commit [0-9]+", "commit N"),
        (r"-{8,}", "---"),
        (r"([-rwx]{10}) +[0-9]+ +[0-9]+ ", "$1 UID GID "),
        (r"[^ ]+@laptop", "me@laptop"),
        (r" +", " "),
    ];
    masks.iter().fold(line.trim_end().to_owned(), |line, (pattern, mask)| {
        Regex::new(pattern).expect("a pattern").replace_all(&line, *mask).into_owned()
    })
}

/// Tells whether a line is about deltas of a few hundred bytes: the pages back up small files, and whether a delta of
/// their metadata is worth keeping hangs on where it is cut, which the random keys decide.
fn hangs_on_keys(line: &str) -> bool {
    Regex::new(r"^Deltas: .*; moved [0-9]+ B$").expect("a pattern").is_match(line)
}

/// Tells whether the lines are as the page has them; `...` stands for any, and a line that [`hangs_on_keys`] may be
/// there.
fn agree(expected: &[String], found: &[String]) -> bool {
    match (expected, found) {
        ([], found) => found.is_empty(),
        (expected, [line, more @ ..]) if hangs_on_keys(line) => agree(expected, more),
        ([any, rest @ ..], found) if any == "..." => (0..=found.len()).any(|skipped| agree(rest, &found[skipped..])),
        ([first, rest @ ..], [found, more @ ..]) => masked(first) == masked(found) && agree(rest, more),
        ([_, ..], []) => false,
    }
}

/// Tells whether what is printed is to be written into the pages.
fn is_written() -> bool {
    std::env::var_os("SILT_GUIDE_WRITE").is_some()
}

/// Runs a page and holds it against what is printed.
fn check(name: &str) {
    let page = Page::read(folder().join(name));
    assert!(!page.steps.is_empty(), "{name} has no commands");
    let printed = run(&page);
    if is_written() {
        return write(page, &printed);
    }
    let mut wrong = String::new();
    let nouns = "files|snapshots|entries|chunks|containers|errors|objects";
    let plural_of_one = Regex::new(&format!(r"(^|[^0-9.,])1 ({nouns})(?-u:\b)")).expect("a pattern");
    for (step, found) in page.steps.iter().zip(&printed) {
        if !agree(&step.printed, found) {
            let (line, page_has) = (step.lines.start, step.printed.join("\n"));
            let prints = found.join("\n");
            writeln!(wrong, "{name}:{line}: {}\nthe page has:\n{page_has}\nit prints:\n{prints}\n", step.command)
                .expect("written");
        }
        let bad = found.iter().find(|line| plural_of_one.is_match(line));
        assert!(bad.is_none(), "{name}: a plural of one: {bad:?}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Puts what was printed into a page, but where the page leaves lines out and agrees.
fn write(mut page: Page, printed: &[Vec<String>]) {
    for (step, found) in page.steps.iter().zip(printed).rev() {
        if !(step.printed.iter().any(|line| line == "...") && agree(&step.printed, found)) {
            page.lines.splice(step.lines.clone(), found.iter().map(|line| line.trim_end().to_owned()));
        }
    }
    fs::write(&page.path, page.lines.join("\n") + "\n").expect("written");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// A test for each page.
macro_rules! pages {
    ($($test:ident: $name:literal,)*) => {
        const RUN: &[&str] = &[$($name),*];
        $(#[test]
        fn $test() {
            check($name);
        })*
    };
}

pages! {
    the_first_backup_is_as_written: "first-backup.md",
    restoring_a_file_is_as_written: "restore-a-file.md",
    restoring_a_machine_is_as_written: "restore-a-machine.md",
    automating_is_as_written: "automate.md",
    the_familys_server_is_as_written: "family-server.md",
    a_thousand_machines_are_as_written: "thousand-machines.md",
    what_to_do_is_as_written: "what-to-do-when.md",
    moving_from_restic_is_as_written: "from-restic.md",
    moving_from_borg_is_as_written: "from-borg.md",
    moving_from_kopia_is_as_written: "from-kopia.md",
}

/// Pages without commands.
const READ: [&str; 3] = ["README.md", "threat-model.md", "compatibility.md"];

#[test]
fn every_page_is_run_or_has_no_commands() {
    let mut not_run = 0;
    for entry in fs::read_dir(folder()).expect("the folder of the pages") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let page = Page::read(path);
        not_run += page.not_run;
        let is_run = RUN.contains(&name.as_str());
        assert!(is_run || READ.contains(&name.as_str()), "{name} is in no list");
        assert!(is_run || page.steps.is_empty(), "{name} has commands that no test runs");
    }
    assert_eq!(not_run, NOT_RUN, "blocks that are not run: as few as possible");
}
