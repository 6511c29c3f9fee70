#include "doppler/program/onnx/multi_device.h"

#include <algorithm>
#include <google/protobuf/unknown_field_set.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/part_plan.h"

namespace doppler::program {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// The fields of onnx.proto since IR version 11 (ONNX 1.18), which libonnx 1.12 carries without knowing their names.
constexpr int kIrVersion = 11;
constexpr int kModelConfiguration = 26;  // ModelProto.configuration, of DeviceConfigurationProto:
constexpr int kName = 1, kNumDevices = 2, kDevice = 3;
constexpr int kNodeConfigurations = 10;  // NodeProto.device_configurations, of NodeDeviceConfigurationProto:
constexpr int kConfigurationId = 1, kShardingSpec = 2, kPipelineStage = 3;
constexpr int kTensorName = 1, kTensorDevice = 2;  // of ShardingSpecProto

std::string bytes_of_fields(const UnknownFieldSet& fields) {
  std::string bytes;
  DOPPLER_CHECK(fields.SerializeToString(&bytes), "fields that were just made");
  return bytes;
}

// Whether a message begins with a text in its field 1: the name of a configuration.
bool is_named(const UnknownField& field, int number, const std::string& name) {
  UnknownFieldSet inner;
  return field.number() == number && field.type() == UnknownField::TYPE_LENGTH_DELIMITED &&
         inner.ParseFromString(field.length_delimited()) && inner.field_count() > 0 &&
         inner.field(0).number() == kName && inner.field(0).type() == UnknownField::TYPE_LENGTH_DELIMITED &&
         inner.field(0).length_delimited() == name;
}
void forget_earlier(UnknownFieldSet& fields, int number, const std::string& name) {
  for (int i = fields.field_count(); i-- > 0;)
    if (is_named(fields.field(i), number, name)) fields.DeleteSubrange(i, 1);
}

std::string on_device(const std::string& tensor, std::uint32_t device) {
  UnknownFieldSet spec;
  spec.AddLengthDelimited(kTensorName, tensor);
  spec.AddVarint(kTensorDevice, device);
  return bytes_of_fields(spec);
}

void configure_node(onnx::NodeProto& node, const std::string& configuration, std::uint32_t device,
                    std::optional<std::uint32_t> stage) {
  UnknownFieldSet fields;
  fields.AddLengthDelimited(kConfigurationId, configuration);
  std::vector<std::string> seen;
  for (const auto* names : {&node.input(), &node.output()})
    for (const std::string& name : *names) {
      if (name.empty() || std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      fields.AddLengthDelimited(kShardingSpec, on_device(name, device));
    }
  if (stage) fields.AddVarint(kPipelineStage, *stage);
  UnknownFieldSet& unknown = *node.GetReflection()->MutableUnknownFields(&node);
  forget_earlier(unknown, kNodeConfigurations, configuration);
  unknown.AddLengthDelimited(kNodeConfigurations, bytes_of_fields(fields));
}

}  // namespace

std::string configure_devices(const std::string& where, std::string_view content, const std::string& configuration,
                              const std::vector<std::string>& devices,
                              const std::vector<std::uint32_t>& device_of_node) {
  onnx::ModelProto model;
  DOPPLER_CHECK(model.ParseFromArray(content.data(), static_cast<int>(content.size())), "a model that was read before");
  model.set_ir_version(std::max<std::int64_t>(model.ir_version(), kIrVersion));
  const PartPlan plan = plan_parts(where, model.graph(), device_of_node);
  std::vector<std::optional<std::uint32_t>> stage(device_of_node.size());
  std::vector<std::uint32_t> placed = device_of_node;  // what reads shapes alone is with its producer
  for (const PartPlan::Part& part : plan.parts)
    for (const int node : part.nodes) {
      stage[static_cast<std::size_t>(node)] = part.level;
      placed[static_cast<std::size_t>(node)] = part.device;
    }
  for (int i = 0; i < model.graph().node_size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    configure_node(*model.mutable_graph()->mutable_node(i), configuration, placed[at], stage[at]);
  }
  UnknownFieldSet fields;
  fields.AddLengthDelimited(kName, configuration);
  fields.AddVarint(kNumDevices, devices.size());
  for (const std::string& device : devices) fields.AddLengthDelimited(kDevice, device);
  UnknownFieldSet& unknown = *model.GetReflection()->MutableUnknownFields(&model);
  forget_earlier(unknown, kModelConfiguration, configuration);
  unknown.AddLengthDelimited(kModelConfiguration, bytes_of_fields(fields));
  return model.SerializeAsString();
}

}  // namespace doppler::program
