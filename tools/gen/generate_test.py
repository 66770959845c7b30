"""Tests of the generator on a spec made here."""
import pathlib
import tempfile
import unittest

import generate

from spec import Function, Library


def library(**changes):
    fields = dict(library="toy", soname="libtoy.so.1", cuda_major="12", version_node="libtoy.so.1", kind="full",
                  status_type="toyStatus", success="0", not_supported="7", definitions="", aliases="")
    return Library(**{**fields, **changes})


def function(signature, treatment="unsupported", signature_12=""):
    return Function("toyCall", signature, signature_12, "libtoy.so.1", treatment)


class Stub(unittest.TestCase):
    def test_unsupported_status_is_that_of_the_library(self):
        self.assertEqual(generate.stub(function("toyStatus(int)"), library()), "MAYA_UNSUPPORTED(toyCall, long, (7))")

    def test_no_signature_means_status(self):
        self.assertEqual(generate.stub(function(""), library()), "MAYA_UNSUPPORTED(toyCall, long, (7))")

    def test_success_and_value(self):
        self.assertEqual(
            generate.stub(function("toyStatus(int)", "success"), library()), "MAYA_HARMLESS(toyCall, long, (0))"
        )
        self.assertEqual(
            generate.stub(function("int(int)", "value:-2"), library()), "MAYA_HARMLESS(toyCall, long, (-2))"
        )

    def test_a_variable(self):
        self.assertEqual(generate.stub(function("", "data:4"), library()), "MAYA_DATA(toyCall, 4)")

    def test_results_that_are_no_status_are_zero(self):
        self.assertEqual(generate.stub(function("void(int)"), library()), "MAYA_UNSUPPORTED_VOID(toyCall)")
        self.assertEqual(
            generate.stub(function("const char *(int)"), library()), "MAYA_UNSUPPORTED(toyCall, long, (0))"
        )
        self.assertEqual(generate.stub(function("double(int)"), library()), "MAYA_UNSUPPORTED(toyCall, double, (0))")

    def test_signature_of_the_cuda_major_is_used(self):
        changed = function("void(int)", signature_12="toyStatus(int)")
        self.assertEqual(generate.stub(changed, library()), "MAYA_UNSUPPORTED(toyCall, long, (7))")
        self.assertEqual(generate.stub(changed, library(cuda_major="13")), "MAYA_UNSUPPORTED_VOID(toyCall)")

    def test_an_unknown_result_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "toyCall returns 'BigStruct'"):
            generate.stub(function("BigStruct(int)"), library())


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.spec = pathlib.Path(self.folder.name)
        (self.spec / "libraries.csv").write_text(
            "library,soname,cuda_major,version_node,kind,status_type,success,not_supported,definitions,aliases\n"
            "toy,libtoy.so.1,any,NODE,full,toyStatus,0,7,TOY=1,libtoy.so\n"
            "toy,libtoy_sub.so.1,any,,thin:libtoy.so.1,,,,,\n")
        (self.spec / "toy.csv").write_text("function,signature,signature_12,sonames,treatment\n"
                                           "toyCall,toyStatus(int),,libtoy.so.1,unsupported\n"
                                           "toyElse,toyStatus(int),,libtoy.so.2,unsupported\n")

    def tearDown(self):
        self.folder.cleanup()

    def test_only_the_sonames_functions_are_exported(self):
        generate.stubs(self.spec, "libtoy.so.1", self.spec / "out")
        script = (self.spec / "out/version.map").read_text()
        self.assertTrue(script.startswith("NODE {"))
        self.assertIn("    toyCall;", script)
        self.assertNotIn("toyElse", script)
        self.assertIn("local: *;", script)

    def test_a_thin_library_has_no_functions(self):
        generate.stubs(self.spec, "libtoy_sub.so.1", self.spec / "out")
        self.assertNotIn("toyCall", (self.spec / "out/stubs.cpp").read_text())
        self.assertTrue((self.spec / "out/version.map").read_text().startswith("{"))

    def test_a_wrong_treatment_is_named(self):
        path = self.spec / "toy.csv"
        path.write_text(path.read_text().replace("unsupported", "unsuported"))
        with self.assertRaisesRegex(SystemExit, "'unsuported' is not a treatment"):
            generate.stubs(self.spec, "libtoy.so.1", self.spec / "out")

    def test_an_unknown_soname_is_named(self):
        with self.assertRaisesRegex(SystemExit, "no SONAME 'libnone.so'"):
            generate.stubs(self.spec, "libnone.so", self.spec / "out")


if __name__ == "__main__":
    unittest.main()
