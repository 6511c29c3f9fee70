#include "doppler/program/onnx/mapped_model.h"

#include <algorithm>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include "doppler/base/mapped_file.h"

namespace doppler::program {
namespace {

using google::protobuf::io::CodedInputStream;

// Hands out a mapped file piece by piece, and forgets each piece when the next one is asked for.
class ForgettingStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit ForgettingStream(std::string_view content) : content_(content) {}
  bool Next(const void** data, int* size) override {
    forget_pages(content_.data() + forgotten_, at_ - forgotten_);
    forgotten_ = at_;
    if (at_ == content_.size()) return false;
    const std::size_t piece = std::min(kPiece, content_.size() - at_);
    *data = content_.data() + at_;
    *size = static_cast<int>(piece);
    at_ += piece;
    return true;
  }
  void BackUp(int count) override { at_ -= static_cast<std::size_t>(count); }
  bool Skip(int count) override {
    const std::size_t wanted = at_ + static_cast<std::size_t>(count);
    at_ = std::min(wanted, content_.size());
    return at_ == wanted;
  }
  std::int64_t ByteCount() const override { return static_cast<std::int64_t>(at_); }

 private:
  static constexpr std::size_t kPiece = std::size_t{4} << 20;
  std::string_view content_;
  std::size_t at_ = 0, forgotten_ = 0;
};

// A message in its bytes: calls `take` with the number and the content of each field that has a length.
template <typename Take>
void for_each_field(std::string_view message, Take take) {
  CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()), static_cast<int>(message.size()));
  while (const std::uint32_t tag = in.ReadTag()) {
    constexpr std::uint32_t kTypeBits = 3, kVarint = 0, k64Bits = 1, kLength = 2, k32Bits = 5;
    const std::uint32_t type = tag & ((1U << kTypeBits) - 1);
    std::uint64_t ignored = 0;
    std::uint32_t length = 0;
    if (type == kLength) {
      if (!in.ReadVarint32(&length)) return;
      const auto at = static_cast<std::size_t>(in.CurrentPosition());
      if (length > message.size() - at || !in.Skip(static_cast<int>(length))) return;
      take(tag >> kTypeBits, message.substr(at, length));
    } else if (!(type == kVarint && in.ReadVarint64(&ignored)) && !(type == k64Bits && in.Skip(8)) &&
               !(type == k32Bits && in.Skip(4))) {
      return;
    }
  }
}

}  // namespace

bool parse_mapped(std::string_view content, onnx::ModelProto& model) {
  ForgettingStream stream(content);
  return model.ParseFromZeroCopyStream(&stream);
}

std::map<std::string, std::string_view> find_raw_data(std::string_view content) {
  constexpr std::size_t kLarge = std::size_t{64} << 10;  // below, a few copies cost less than their pages
  // Numbers of onnx.proto: ModelProto.graph, GraphProto.initializer, TensorProto.name and raw_data.
  constexpr std::uint32_t kGraph = 7, kInitializer = 5, kName = 8, kRawData = 9;
  std::map<std::string, std::string_view> found;
  for_each_field(content, [&](std::uint32_t graph, std::string_view nodes) {
    if (graph != kGraph) return;
    for_each_field(nodes, [&](std::uint32_t number, std::string_view tensor) {
      if (number != kInitializer) return;
      std::string name;
      std::string_view data;
      for_each_field(tensor, [&](std::uint32_t field, std::string_view bytes) {
        if (field == kName) name = bytes;
        if (field == kRawData) data = bytes;
      });
      if (data.size() >= kLarge) found[name] = data;
    });
  });
  return found;
}

}  // namespace doppler::program
