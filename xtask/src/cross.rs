//! The tests of the crates with instruction sets in them, on processors that are not here: built with the oldest
//! compiler they promise to build with, run by an emulator. Three more promises that only this build can hold are
//! looked at here: that compiler builds them for this processor too, `siltstone-chunk` and `siltstone-similar` need no
//! `std`, and the searches of AE, MAXP and RAM become vector instructions on each.

mod toolchain;

use anyhow::{Result, ensure};
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::program;
use siltstone_testbed::workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use toolchain::Toolchain;

/// A processor that is not here.
struct Target {
    /// As Rust names it.
    triple: &'static str,
    /// As the programs of the C compiler begin, and the folder of its libraries.
    tools: &'static str,
    emulator: &'static str,
    needed: [Needed; 3],
}

const ARM: Target = Target {
    triple: "aarch64-unknown-linux-gnu",
    tools: "aarch64-linux-gnu",
    emulator: "qemu-aarch64",
    needed: [
        Needed { program: "aarch64-linux-gnu-gcc", package: "gcc-aarch64-linux-gnu" },
        Needed { program: "/usr/aarch64-linux-gnu/lib/crt1.o", package: "libc6-dev-arm64-cross" },
        Needed { program: "qemu-aarch64", package: "qemu-user" },
    ],
};

const POWER: Target = Target {
    triple: "powerpc64le-unknown-linux-gnu",
    tools: "powerpc64le-linux-gnu",
    emulator: "qemu-ppc64le",
    needed: [
        Needed { program: "powerpc64le-linux-gnu-gcc", package: "gcc-powerpc64le-linux-gnu" },
        Needed { program: "/usr/powerpc64le-linux-gnu/lib/crt1.o", package: "libc6-dev-ppc64el-cross" },
        Needed { program: "qemu-ppc64le", package: "qemu-user" },
    ],
};

/// The crates with instruction sets in them, and what they share.
pub(crate) const PACKAGES: [&str; 8] = [
    "--package",
    "siltstone-simd",
    "--package",
    "siltstone-rolling",
    "--package",
    "siltstone-chunk",
    "--package",
    "siltstone-similar",
];

/// How everything is compiled here: our crates as users get them, because the emulator is slow enough.
const PROFILE: &str = "cross";

/// Crates that need no `std`: each has a user that cannot have it, `tests/no_std/lib.rs`.
const NO_STD: [&str; 2] = ["chunk", "similar"];

/// How many of these instructions the functions of a module hold at least, in the example `algorithms`: about half of
/// what they hold today. A step of an inner loop takes 4 to 16 of them.
struct Vectorised {
    module: &'static str,
    instructions: &'static [&'static str],
    least: usize,
}

const fn vectorised(module: &'static str, instructions: &'static [&'static str], least: usize) -> Vectorised {
    Vectorised { module, instructions, least }
}

/// On POWER, where our vectors are plain arrays that the compiler makes vectors of.
const VECTORISED_ON_POWER: [Vectorised; 8] = [
    vectorised("siltstone_chunk::ae::bytes", &["vmaxub", "vminub"], 16),
    vectorised("siltstone_chunk::ae::bytes", &["vcmpgtub"], 5),
    vectorised("siltstone_chunk::ae::wide", &["vmaxub", "vminub"], 20),
    vectorised("siltstone_chunk::ae::wide", &["vcmpgtub"], 32),
    vectorised("siltstone_chunk::maxp", &["vmaxub"], 50),
    vectorised("siltstone_chunk::maxp", &["vcmpgtub", "vcmpequb"], 29),
    vectorised("siltstone_chunk::ram", &["vmaxub"], 23),
    vectorised("siltstone_chunk::ram", &["vcmpgtub"], 3),
];

/// On ARM, where they are NEON.
const VECTORISED_ON_ARM: [Vectorised; 8] = [
    vectorised("siltstone_chunk::ae::bytes", &["umax", "umin"], 15),
    vectorised("siltstone_chunk::ae::bytes", &["cmhi", "cmhs"], 10),
    vectorised("siltstone_chunk::ae::wide", &["umax", "umin"], 33),
    vectorised("siltstone_chunk::ae::wide", &["cmhi", "cmhs"], 40),
    vectorised("siltstone_chunk::maxp", &["umax"], 106),
    vectorised("siltstone_chunk::maxp", &["cmhi", "cmhs", "cmeq"], 45),
    vectorised("siltstone_chunk::ram", &["umax"], 22),
    vectorised("siltstone_chunk::ram", &["cmhi", "cmhs"], 9),
];

/// Installs what is missing, builds, runs, looks.
pub(crate) fn run() -> Result<()> {
    install::ensure(&[install::COMPILER])?;
    install::ensure(&[ARM.needed, POWER.needed].concat())?;
    let cross = Cross { toolchain: Toolchain::ensure()?, folder: workspace::target()?.join("cross").join("build") };
    let here = ["--quiet", "--all-features", "--target", "x86_64-unknown-linux-gnu"];
    program::run(cross.cargo("check").args(here).args(PACKAGES))?;
    cross.needs_no_std()?;
    // The example with the tests: alone, its dependencies would have other features and be compiled once more.
    program::run(cross.everything("build").args(["--example", "algorithms"]))?;
    cross.is_vectorised(&POWER, "POWER", &VECTORISED_ON_POWER)?;
    cross.is_vectorised(&ARM, "ARM", &VECTORISED_ON_ARM)?;
    program::run(cross.everything("test").arg("--no-fail-fast"))
}

struct Cross {
    toolchain: Toolchain,
    /// Where it builds: beside the results of the usual compiler, not among them.
    folder: PathBuf,
}

impl Cross {
    /// The cargo that runs us, driving the other compiler.
    fn cargo(&self, word: &str) -> Command {
        let mut command = workspace::cargo();
        command.args([word, "--profile", PROFILE, "--locked"]);
        command.env("CARGO_TARGET_DIR", &self.folder);
        // The machine code is looked through by the names of functions, types of kernels included.
        command.env("RUSTFLAGS", "-Csymbol-mangling-version=v0");
        command.env("RUSTC", self.toolchain.rustc()).envs(self.toolchain.variables());
        for target in [ARM, POWER] {
            let compiler = format!("{}-gcc", target.tools);
            let variable = |name| format!("CARGO_TARGET_{}_{name}", target.triple.to_uppercase().replace('-', "_"));
            command.env(variable("RUNNER"), format!("{} -L /usr/{}", target.emulator, target.tools));
            command.env(variable("LINKER"), &compiler);
            command.env(format!("CC_{}", target.triple.replace('-', "_")), compiler);
        }
        command
    }

    /// All packages with their tests, for both processors.
    fn everything(&self, word: &str) -> Command {
        let mut command = self.cargo(word);
        command.args(["--quiet", "--lib", "--tests", "--target", ARM.triple, "--target", POWER.triple]).args(PACKAGES);
        command
    }

    /// Folder of what was built for `target`.
    fn built(&self, target: &Target) -> PathBuf {
        self.folder.join(target.triple).join(PROFILE)
    }

    /// Compiles programs that cannot be compiled with `std`.
    fn needs_no_std(&self) -> Result<()> {
        let build = ["--quiet", "--no-default-features", "--target", ARM.triple];
        program::run(self.cargo("build").args(build).args(PACKAGES))?;
        let built = self.built(&ARM);
        NO_STD.iter().try_for_each(|name| {
            let library = format!("siltstone_{name}={}", built.join(format!("libsiltstone_{name}.rlib")).display());
            let dependencies = format!("dependency={}", built.join("deps").display());
            let mut command = Command::new(self.toolchain.rustc());
            command.envs(self.toolchain.variables()).current_dir(workspace::root());
            command.args(["--edition", "2024", "--crate-type", "rlib", "--target", ARM.triple, "-C", "panic=abort"]);
            command.args(["--extern", &library, "-L", &dependencies, "-o"]);
            command.arg(self.folder.join(format!("libno_std_{name}.rlib")));
            program::run(command.arg(format!("crates/{name}/tests/no_std/lib.rs")))
        })
    }

    /// Looks for vector instructions in the machine code for a processor.
    fn is_vectorised(&self, target: &Target, name: &str, expected: &[Vectorised]) -> Result<()> {
        let code = disassemble(target, &self.built(target).join("examples").join("algorithms"))?;
        for Vectorised { module, instructions, least } in expected {
            let (found, words) = (count(&code, module, instructions), instructions.join(", "));
            ensure!(
                found >= *least,
                "{module} holds {found} of the instructions {words} on {name}, not {least}: it is not vectorised",
            );
        }
        eprintln!("AE, MAXP and RAM search by vectors on {name}");
        Ok(())
    }
}

fn disassemble(target: &Target, file: &Path) -> Result<String> {
    let mut command = Command::new(format!("{}-objdump", target.tools));
    program::quietly(command.args(["--disassemble", "--demangle", "--no-show-raw-insn"]).arg(file))
}

/// Counts any of the instructions in the functions that have the module in their names. Functions are parted by empty
/// lines.
fn count(code: &str, module: &str, instructions: &[&str]) -> usize {
    let module = format!("{module}::");
    let bodies = code.split("\n\n").filter(|body| body.lines().next().is_some_and(|line| line.contains(&module)));
    bodies.flat_map(str::split_whitespace).filter(|word| instructions.contains(word)).count()
}
