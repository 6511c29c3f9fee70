// A module with one function, for module_test.cpp.
extern "C" int module_answer() { return 42; }
