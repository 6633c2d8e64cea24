"""Compiled programs are kept, where they may be."""

import subprocess
import sys

CODE = """
import jax
from nsode_jax.decoding.compiled import keep_compiled_programs
keep_compiled_programs()
print(jax.config.jax_compilation_cache_dir)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.jit(lambda x: x + 1)(1.0)
"""


def run(**environment):
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={"PATH": "", "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def test_programs_are_kept_in_the_users_cache(tmp_path):
    folder, _ = run(XDG_CACHE_HOME=str(tmp_path))
    assert folder.startswith(str(tmp_path / "nsode_jax" / "compiled-"))
    (kept,) = (tmp_path / "nsode_jax").iterdir()
    assert any(kept.iterdir())
    assert run(HOME=str(tmp_path))[0].startswith(str(tmp_path / ".cache" / "nsode_jax"))


def test_the_users_own_folder_stays(tmp_path):
    chosen = tmp_path / "chosen"
    folder, _ = run(XDG_CACHE_HOME=str(tmp_path), JAX_COMPILATION_CACHE_DIR=str(chosen))
    assert folder == str(chosen)
    assert not (tmp_path / "nsode_jax").exists()


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    assert run(XDG_CACHE_HOME=str(tmp_path / "file")) == ("None", "")
