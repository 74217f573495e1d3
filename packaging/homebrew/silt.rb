class Silt < Formula
  desc "Encrypted backup store that gives space back at once"
  homepage "@HOMEPAGE@"
  url "@SOURCE_URL@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    system "cargo", "install", *std_cargo_args(path: "crates/import")

    system bin/"silt", "generate", "--man", ".",
           "--bash-completion", "silt.bash", "--zsh-completion", "_silt",
           "--fish-completion", "silt.fish", "--powershell-completion", "silt.ps1"
    man1.install Dir["*.1"]
    bash_completion.install "silt.bash" => "silt"
    zsh_completion.install "_silt"
    fish_completion.install "silt.fish"
    pwsh_completion.install "silt.ps1" => "_silt.ps1"
  end

  test do
    ENV["SILT_PASSWORD"] = "secret"
    (testpath/"source/file").write "content"
    system bin/"silt", "init", testpath/"repository"
    system bin/"silt", "-r", testpath/"repository", "backup", testpath/"source"
    system bin/"silt", "-r", testpath/"repository", "restore", "latest", "--target", testpath/"restored"
    assert_equal "content", (Dir[testpath/"restored/**/file"].map { |file| File.read(file) }).first
  end
end
