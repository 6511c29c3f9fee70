#include "doppler/kernels/npy.h"

#include <cstring>

#include "tests/program/support.h"

namespace doppler {
namespace {

using namespace program;

Dense counting(const Shape& shape, bool complex) {
  Dense dense(shape);
  double next = 0;
  for (auto& value : dense.values) {
    next += 1;
    value = {next, complex ? -next : 0.0};
  }
  return dense;
}

std::string file_of(const std::string& header, const std::string& data, char version = 1) {
  std::string result = "\x93NUMPY";
  result += {version, '\0', static_cast<char>(header.size()), '\0'};
  if (version == 2) result += {'\0', '\0'};
  return result + header + data;
}

std::string bytes_of(std::initializer_list<float> values) {
  std::string result(values.size() * sizeof(float), '\0');
  std::memcpy(result.data(), values.begin(), result.size());
  return result;
}

TEST(AnArrayFile, KeepsEveryTypeAndShape) {
  for (const DType dtype : {DType::f32, DType::f64, DType::c64, DType::c128})
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{2, 1, 4}}) {
      const Dense dense = counting(shape, is_complex(dtype));
      const std::string file = to_npy(to_array(dense, dtype));
      EXPECT_EQ((file.size() - dense.values.size() * size_of(dtype)) % 64, 0u);  // the format aligns its data
      const Array back = parse_npy("x.npy", file);
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(largest_difference(to_dense(back), dense), 0);
    }
}

TEST(AnArrayFile, IsWhatNumPyWrites) {
  // numpy.save of numpy.array([[1, 2, 3]], dtype='f4')
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }" + std::string(58, ' ') + "\n";
  const std::string file = file_of(header, bytes_of({1, 2, 3}));
  EXPECT_EQ(file.size(), 128u + 12u);
  EXPECT_EQ(to_npy(parse_npy("x.npy", file)), file);
}

TEST(AnArrayFile, MayHaveFortranOrderAndVersionTwo) {
  const std::string header = "{\"shape\": (2, 3), 'fortran_order': True, 'descr': '<f4'}";
  const Array array = parse_npy("x.npy", file_of(header, bytes_of({1, 4, 2, 5, 3, 6}), 2));
  EXPECT_EQ(largest_difference(to_dense(array), counting({2, 3}, false)), 0);
}

TEST(AnArrayFile, IsRefusedWithItsNameAndTheReason) {
  const auto refusal = [](const std::string& file) { return message_of([&] { parse_npy("x.npy", file); }); };
  const std::string data = bytes_of({1, 2});
  const auto with = [&](const std::string& header) { return refusal(file_of(header, data)); };
  EXPECT_EQ(refusal("PK"), "x.npy: not an array file; required NumPy's .npy");
  EXPECT_EQ(refusal(file_of("", "", 3)), "x.npy: npy version 3.0; required 1.0 or 2.0");
  EXPECT_EQ(refusal(file_of("{}", "").substr(0, 11)), "x.npy: the file ends within its header; required all of it");
  EXPECT_EQ(with("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}"),
            "x.npy: npy header: found another element type; required '<f4', '<f8', '<c8' or '<c16'");
  EXPECT_EQ(with("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}"),
            "x.npy: npy header: found no truth value; required True or False");
  EXPECT_EQ(with("{'descr': '<f4', 'shape': (2,)}"),
            "x.npy: npy header: found a key missing; required 'descr', 'fortran_order' and 'shape'");
  EXPECT_EQ(with("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}"),
            "x.npy: npy header: found a size that is none; required whole numbers from 1 on");
  EXPECT_EQ(with("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"),
            "x.npy: 8 bytes of data for shape [3]; required 3 elements of 4 bytes");
  EXPECT_EQ(with("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 1000000000000)}"),
            "x.npy: npy header: found a shape of too many elements; required fewer");
}

}  // namespace
}  // namespace doppler
