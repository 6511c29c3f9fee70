#include "doppler/program/text/ein_text.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/base/error.h"
#include "doppler/program/expr/library.h"
#include "doppler/program/text/ein_lexer.h"

namespace doppler::program {
namespace {

constexpr int kDeepestNesting = 100;
constexpr std::size_t kMostDimensions = 12;
constexpr std::size_t kMostOperands = 16;    // tensors in one statement
constexpr std::size_t kLongestScalar = 200;  // instructions in one statement
constexpr double kLargestWhole = 1e15;       // exact in a double

using Labels = std::vector<std::string>;

// An argument of a library function.
struct Argument {
  enum class Kind : std::uint8_t { tensor, number, range, dtype } kind = Kind::number;
  Token token;
  Expr tensor;
  double number = 0;
  Index begin = 0, end = 0;
  DType dtype = DType::f32;
};

struct Function {
  std::string_view name;
  std::string_view arguments;  // "tt": two tensors, 'n' number, 'w' whole number, 'r' range, 'd' dtype; the
                               // one before '?' may be absent, before '+' it may be repeated
  std::string_view usage;
  Expr (*call)(Program&, const std::vector<Argument>&);
};

Index whole(const Argument& a) { return static_cast<Index>(a.number); }

Expr call_concat(Program& p, const std::vector<Argument>& a) {
  std::vector<Expr> parts;
  for (std::size_t i = 1; i < a.size(); ++i) parts.push_back(a[i].tensor);
  return p.concat(parts, static_cast<std::size_t>(a[0].number));
}

Expr call_select(Program& p, const std::vector<Argument>& a) {
  Rect region;
  for (std::size_t i = 1; i < a.size(); ++i) region.begin.push_back(a[i].begin), region.end.push_back(a[i].end);
  return p.select(a[0].tensor, std::move(region));
}

Expr call_shape(Program& p, const std::vector<Argument>& a) {
  Shape shape;
  for (std::size_t i = 1; i < a.size(); ++i) shape.push_back(whole(a[i]));
  return p.reshape_ones(a[0].tensor, std::move(shape));
}

Expr call_fill(Program& p, const std::vector<Argument>& a) {
  Shape shape;
  for (std::size_t i = 1; i < a.size(); ++i) shape.push_back(whole(a[i]));
  return p.fill(std::move(shape), DType::f32, {.value = a[0].number, .above = a[0].number});
}

constexpr Function kFunctions[] = {
    {"matmul", "tt", "matmul(x, w)", [](Program&, const auto& a) { return matmul(a[0].tensor, a[1].tensor); }},
    {"mlp", "ttt", "mlp(x, w1, w2)",
     [](Program&, const auto& a) { return mlp(a[0].tensor, a[1].tensor, a[2].tensor); }},
    {"softmax", "t", "softmax(x)", [](Program&, const auto& a) { return softmax(a[0].tensor); }},
    {"rms_norm", "ttw?", "rms_norm(x, w[, dimensions])",
     [](Program&, const auto& a) {
       return rms_norm(a[0].tensor, a[1].tensor, a.size() > 2 ? static_cast<std::size_t>(a[2].number) : 1);
     }},
    {"layer_norm", "ttt", "layer_norm(x, w, b)",
     [](Program&, const auto& a) { return layer_norm(a[0].tensor, a[1].tensor, a[2].tensor); }},
    {"rotary", "tt", "rotary(x, table)", [](Program&, const auto& a) { return rotary(a[0].tensor, a[1].tensor); }},
    {"attention", "tttt?", "attention(q, k, v[, mask])",
     [](Program&, const auto& a) {
       return attention(a[0].tensor, a[1].tensor, a[2].tensor,
                        a.size() > 3 ? std::optional(a[3].tensor) : std::nullopt);
     }},
    {"causal_mask", "wd?", "causal_mask(size[, dtype])",
     [](Program& p, const auto& a) { return causal_mask(p, whole(a[0]), a.size() > 1 ? a[1].dtype : DType::f32); }},
    {"cross_entropy", "tt", "cross_entropy(logits, targets)",
     [](Program&, const auto& a) { return cross_entropy(a[0].tensor, a[1].tensor); }},
    {"mean_square_error", "tt", "mean_square_error(prediction, target)",
     [](Program&, const auto& a) { return mean_square_error(a[0].tensor, a[1].tensor); }},
    {"concat", "wt+", "concat(axis, x, y, …)", call_concat},
    {"select", "tr+", "select(x, begin:end, …)", call_select},
    {"reshape_ones", "tw+", "reshape_ones(x, size, …)", call_shape},
    {"fill", "nw+", "fill(value, size, …)", call_fill},
    {"to_complex", "t", "to_complex(x)", [](Program& p, const auto& a) { return p.to_complex(a[0].tensor); }},
    {"to_real", "t", "to_real(x)", [](Program& p, const auto& a) { return p.to_real(a[0].tensor); }},
    {"convert", "td", "convert(x, dtype)",
     [](Program& p, const auto& a) { return p.convert(a[0].tensor, a[1].dtype); }},
};

const Function* find_function(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const Function& f) { return f.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

struct ScalarFunction {
  std::string_view name;
  std::size_t arguments;
  Scalar (*call)(const std::vector<Scalar>&);
};
constexpr ScalarFunction kScalarFunctions[] = {
    {"exp", 1, [](const auto& a) { return exp(a[0]); }},
    {"log", 1, [](const auto& a) { return log(a[0]); }},
    {"tanh", 1, [](const auto& a) { return tanh(a[0]); }},
    {"sqrt", 1, [](const auto& a) { return sqrt(a[0]); }},
    {"sigmoid", 1, [](const auto& a) { return sigmoid(a[0]); }},
    {"relu", 1, [](const auto& a) { return relu(a[0]); }},
    {"silu", 1, [](const auto& a) { return silu(a[0]); }},
    {"gelu", 1, [](const auto& a) { return gelu(a[0]); }},
    {"conj", 1, [](const auto& a) { return conj(a[0]); }},
    {"max", 2, [](const auto& a) { return maximum(a[0], a[1]); }},
    {"min", 2, [](const auto& a) { return minimum(a[0], a[1]); }},
};

std::optional<DType> find_dtype(std::string_view text) {
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::c32, DType::c64, DType::c128})
    if (to_string(dtype) == text) return dtype;
  return std::nullopt;
}

class Parser {
 public:
  Parser(const std::string& where, std::string_view text)
      : where_(where), tokens_(tokenize(where, text)), program_(std::make_unique<Program>()) {}

  EinProgram run() {
    while (peek().kind != Token::Kind::end) {
      if (peek().kind != Token::Kind::newline) statement();
      if (peek().kind == Token::Kind::end) break;
      if (peek().kind != Token::Kind::newline) refuse(where_, peek(), "the end of the statement");
      ++next_;
    }
    if (program_->size() == 0) refuse(where_, peek(), "a program: size, input, weight, …");
    if (program_->outputs().empty()) mark_unread();
    return {std::move(program_), loss_};
  }

 private:
  struct Name {
    ExprId id;
    int line;
  };

  const Token& peek() const { return tokens_[next_]; }
  bool at(std::string_view symbol) const { return peek().kind == Token::Kind::symbol && peek().text == symbol; }
  bool accept(std::string_view symbol) { return at(symbol) ? (++next_, true) : false; }
  void expect(std::string_view symbol) {
    if (!accept(symbol)) refuse(where_, peek(), fmt::format("'{}'", symbol));
  }
  const Token& word(std::string_view required) {
    if (peek().kind != Token::Kind::word) refuse(where_, peek(), required);
    return tokens_[next_++];
  }

  void statement() {
    const Token first = word("a statement");
    if (first.text == "size") return sizes();
    if (first.text == "input" || first.text == "weight") return input(first.text == "weight");
    if (first.text == "output" || first.text == "loss") return outputs(first.text == "loss");
    define(first);
  }

  void sizes() {
    do {
      const Token name = word("a name");
      expect("=");
      const Index value = size("a size");
      if (!sizes_.emplace(name.text, value).second) refuse(where_, name, "a name that is not a size yet");
    } while (accept(","));
  }

  // A whole number, or the name of a size.
  Index size(std::string_view required) {
    const Token token = peek();
    if (token.kind == Token::Kind::word) {
      const auto found = sizes_.find(token.text);
      if (found == sizes_.end()) refuse(where_, token, "a number, or a name from a size statement above");
      ++next_;
      return found->second;
    }
    if (token.kind != Token::Kind::number || token.value != std::floor(token.value) || token.value > kLargestWhole)
      refuse(where_, token, fmt::format("{}: a whole number", required));
    ++next_;
    return static_cast<Index>(token.value);
  }

  void input(bool weight) {
    const Token name = fresh_name(word("a name"));
    expect("[");
    Shape shape;
    while (!at("]")) {
      if (!shape.empty()) expect(",");
      shape.push_back(size("a size"));
      limit(shape.size(), kMostDimensions, name, "dimensions");
    }
    expect("]");
    DType dtype = DType::f32;
    if (peek().kind == Token::Kind::word) {
      const std::optional<DType> found = find_dtype(peek().text);
      if (!found) refuse(where_, peek(), "f16, f32, f64, c32, c64 or c128");
      dtype = *found;
      ++next_;
    }
    checked(name, [&] {
      const std::string text(name.text);
      return weight ? program_->weight(text, shape, dtype) : program_->input(text, shape, dtype);
    });
  }

  void outputs(bool loss) {
    do {
      const Token name = peek();
      const ExprId id = known(word("the name of an expression")).id;
      if (loss) {
        if (loss_) refuse(where_, name, "one loss");
        if (!program_->node(id).shape.empty())
          throw InputError(fmt::format("{}: '{}' has shape {}; required a scalar loss", position(where_, name),
                                       name.text, to_string(program_->node(id).shape)));
        loss_ = id;
      }
      program_->mark_output(program_->expr(id));
    } while (!loss && accept(","));
  }

  const Name& known(const Token& token) const {
    const auto found = names_.find(token.text);
    if (found == names_.end()) refuse(where_, token, "the name of an expression above");
    return found->second;
  }

  const Token& fresh_name(const Token& token) const {
    const auto found = names_.find(token.text);
    if (found != names_.end())
      refuse(where_, token, fmt::format("a new name; line {} defines this one", found->second.line));
    return token;
  }

  void limit(std::size_t count, std::size_t most, const Token& at_token, std::string_view what) const {
    if (count > most)
      throw InputError(
          fmt::format("{}: found more than {} {}; required fewer", position(where_, at_token), most, what));
  }

  // Builds an expression, gives it its name, and says where if that fails.
  template <typename Build>
  void checked(const Token& name, Build build) {
    try {
      names_[std::string(name.text)] = {build().id, name.line};
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", position(where_, name), error.what()));
    }
  }

  void define(const Token& first) {
    const Token name = fresh_name(first);
    std::optional<Labels> output;
    if (at("[")) output = label_list();
    expect("=");
    if (!output && peek().kind == Token::Kind::word && find_function(peek().text) != nullptr) return call(name);
    operands_.clear();
    operand_labels_.clear();
    std::optional<Aggregate> aggregate;
    Labels reduced;
    if (output && peek().kind == Token::Kind::word) aggregate = aggregation(reduced);
    const Scalar join = sum(0);
    limit(join.code().size(), kLongestScalar, name, "operations in one statement");
    if (operands_.empty()) refuse(where_, peek(), "an expression that reads a tensor");
    const bool labelled = std::any_of(operand_labels_.begin(), operand_labels_.end(),
                                      [](const Labels& labels) { return !labels.empty(); });
    if (!output && labelled) refuse(where_, name, fmt::format("labels on both sides, e.g. {}[i]", name.text));
    checked(name, [&] {
      const std::string text(name.text);
      if (!output) return program_->map(operands_, join, text);
      check_reduced(*output, reduced);
      EinsumOptions options{.join = join, .aggregate = aggregate, .sizes = {}, .name = text};
      for (const auto& [label, value] : sizes_) options.sizes[label] = value;
      std::erase_if(options.sizes, [&](const auto& entry) { return !uses(*output, entry.first); });
      return program_->einsum(operand_labels_, *output, operands_, std::move(options));
    });
  }

  bool uses(const Labels& output, const std::string& label) const {
    const auto has = [&](const Labels& list) { return std::find(list.begin(), list.end(), label) != list.end(); };
    return has(output) || std::any_of(operand_labels_.begin(), operand_labels_.end(), has);
  }

  Labels label_list() {
    Labels labels;
    const Token open = peek();
    expect("[");
    while (!at("]")) {
      if (!labels.empty()) expect(",");
      labels.emplace_back(word("a label").text);
      limit(labels.size(), kMostDimensions, open, "labels");
    }
    expect("]");
    return labels;
  }

  // "sum[d]" but not "max(a, b)".
  std::optional<Aggregate> aggregation(Labels& reduced) {
    for (const Aggregate aggregate : {Aggregate::sum, Aggregate::product, Aggregate::max, Aggregate::min}) {
      if (peek().text != to_string(aggregate) || tokens_[next_ + 1].text != "[" || names_.contains(peek().text))
        continue;
      ++next_;
      reduced = label_list();
      return aggregate;
    }
    return std::nullopt;
  }

  // The aggregation must name exactly the labels that the output lacks.
  void check_reduced(const Labels& output, Labels reduced) const {
    Labels missing;
    for (const Labels& labels : operand_labels_)
      for (const std::string& label : labels)
        if (std::find(output.begin(), output.end(), label) == output.end()) missing.push_back(label);
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    std::sort(reduced.begin(), reduced.end());
    if (missing != reduced)
      throw InputError(
          fmt::format("labels [{}] are in the inputs but not in the output, and [{}] are aggregated; "
                      "required the same, e.g. sum[{}]",
                      fmt::join(missing, ", "), fmt::join(reduced, ", "), fmt::join(missing, ", ")));
  }

  // sum := term (('+' | '-') term)*
  Scalar sum(int depth) {
    Scalar value = term(depth);
    while (at("+") || at("-")) {
      const bool plus = accept("+");
      if (!plus) ++next_;
      const Scalar right = term(depth);
      value = plus ? value + right : value - right;
      limit_scalar(value);
    }
    return value;
  }

  // term := factor (('*' | '/') factor)*
  Scalar term(int depth) {
    Scalar value = factor(depth);
    while (at("*") || at("/")) {
      const bool times = accept("*");
      if (!times) ++next_;
      const Scalar right = factor(depth);
      value = times ? value * right : value / right;
      limit_scalar(value);
    }
    return value;
  }

  // factor := '-' factor | atom ['^' factor]
  Scalar factor(int depth) {
    if (depth > kDeepestNesting)
      throw InputError(fmt::format("{}: found more than {} nested operations; required fewer", position(where_, peek()),
                                   kDeepestNesting));
    if (accept("-")) return -factor(depth + 1);
    const Scalar base = atom(depth);
    return accept("^") ? pow(base, factor(depth + 1)) : base;
  }

  void limit_scalar(const Scalar& value) const {
    limit(value.code().size(), kLongestScalar, peek(), "operations in one statement");
  }

  // atom := number | '$' name | '(' sum ')' | function '(' … ')' | dtype '(' sum ')' | tensor ['[' labels
  // ']']
  Scalar atom(int depth) {
    const Token token = peek();
    if (token.kind == Token::Kind::number) return ++next_, Scalar(token.value);
    if (accept("$")) return Scalar::variable(std::string(word("the name of a variable").text));
    if (accept("(")) {
      const Scalar value = sum(depth + 1);
      expect(")");
      return value;
    }
    if (token.kind != Token::Kind::word) refuse(where_, token, "a number, a tensor, $variable, a function or '('");
    ++next_;
    return at("(") ? scalar_call(token, depth) : tensor_operand(token);
  }

  Scalar scalar_call(const Token& name, int depth) {
    if (name.text == "if") return conditional(depth);
    if (const std::optional<DType> dtype = find_dtype(name.text)) {
      expect("(");
      const Scalar value = sum(depth + 1);
      expect(")");
      return convert(*dtype, value);
    }
    const auto found = std::find_if(std::begin(kScalarFunctions), std::end(kScalarFunctions),
                                    [&](const ScalarFunction& f) { return f.name == name.text; });
    if (found == std::end(kScalarFunctions)) {
      Labels names;
      for (const ScalarFunction& f : kScalarFunctions) names.emplace_back(f.name);
      refuse(where_, name, fmt::format("one of if, a dtype, {}", fmt::join(names, ", ")));
    }
    expect("(");
    std::vector<Scalar> arguments;
    for (std::size_t i = 0; i < found->arguments; ++i) {
      if (i > 0) expect(",");
      arguments.push_back(sum(depth + 1));
    }
    expect(")");
    return found->call(arguments);
  }

  // if(a < b, then, otherwise)
  Scalar conditional(int depth) {
    expect("(");
    const Scalar a = sum(depth + 1);
    expect("<");
    const Scalar b = sum(depth + 1);
    expect(",");
    const Scalar then = sum(depth + 1);
    expect(",");
    const Scalar otherwise = sum(depth + 1);
    expect(")");
    return if_less(a, b, then, otherwise);
  }

  // The same tensor with the same labels is the same operand.
  Scalar tensor_operand(const Token& token) {
    const Expr expr = program_->expr(known(token).id);
    const Labels labels = at("[") ? label_list() : Labels();
    for (std::uint32_t k = 0; k < operands_.size(); ++k)
      if (operands_[k].id == expr.id && operand_labels_[k] == labels) return Scalar::argument(k);
    operands_.push_back(expr);
    operand_labels_.push_back(labels);
    limit(operands_.size(), kMostOperands, token, "tensors in one statement");
    return Scalar::argument(static_cast<std::uint32_t>(operands_.size() - 1));
  }

  void call(const Token& name) {
    const Token function_token = word("a function");
    const Function& function = *find_function(function_token.text);
    expect("(");
    std::vector<Argument> arguments;
    while (!at(")")) {
      if (!arguments.empty()) expect(",");
      arguments.push_back(argument());
    }
    expect(")");
    if (!matches(function.arguments, arguments)) refuse(where_, function_token, fmt::format("{}", function.usage));
    checked(name, [&] {
      const Program::Scope scope(*program_, name.text);
      return function.call(*program_, arguments);
    });
  }

  Argument argument() {
    Argument result;
    result.token = peek();
    if (peek().kind == Token::Kind::word) {
      if (const std::optional<DType> dtype = find_dtype(peek().text)) {
        ++next_;
        result.kind = Argument::Kind::dtype;
        result.dtype = *dtype;
        return result;
      }
      if (!sizes_.contains(peek().text) || names_.contains(peek().text)) {
        result.kind = Argument::Kind::tensor;
        result.tensor = program_->expr(known(tokens_[next_++]).id);
        return result;
      }
    }
    const bool negative = accept("-");
    if (peek().kind == Token::Kind::number && peek().value != std::floor(peek().value)) {
      result.number = tokens_[next_++].value;
    } else {
      result.begin = size("a number");
      result.number = static_cast<double>(result.begin);
    }
    if (negative) result.number = -result.number;
    if (!accept(":")) return result;
    result.kind = Argument::Kind::range;
    result.end = size("the end of a range");
    return result;
  }

  static bool matches(std::string_view pattern, const std::vector<Argument>& arguments) {
    const auto fits = [](char wanted, const Argument& a) {
      switch (wanted) {
        case 't':
          return a.kind == Argument::Kind::tensor;
        case 'n':
          return a.kind == Argument::Kind::number;
        case 'w':
          return a.kind == Argument::Kind::number && a.number >= 0 && a.number == std::floor(a.number);
        case 'r':
          return a.kind == Argument::Kind::range;
        default:
          return a.kind == Argument::Kind::dtype;
      }
    };
    std::size_t given = 0;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const char suffix = i + 1 < pattern.size() ? pattern[i + 1] : ' ';
      const bool optional = suffix == '?', repeated = suffix == '+';
      if (given == arguments.size()) return optional;
      if (!fits(pattern[i], arguments[given++])) return false;
      while (repeated && given < arguments.size())
        if (!fits(pattern[i], arguments[given++])) return false;
      if (optional || repeated) ++i;
    }
    return given == arguments.size();
  }

  void mark_unread() {
    std::vector<char> read(program_->size(), 0);
    for (ExprId id = 0; id < program_->size(); ++id)
      for (const ExprId input : program_->node(id).inputs) read[input] = 1;
    for (ExprId id = 0; id < program_->size(); ++id)
      if (!read[id] && program_->node(id).as<Input>() == nullptr) program_->mark_output(program_->expr(id));
  }

  const std::string& where_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  std::unique_ptr<Program> program_;
  std::optional<ExprId> loss_;
  std::map<std::string, Index, std::less<>> sizes_;
  std::map<std::string, Name, std::less<>> names_;
  // Of the statement being read.
  std::vector<Expr> operands_;
  Program::LabelLists operand_labels_;
};

}  // namespace

EinProgram parse_ein(const std::string& where, std::string_view text) { return Parser(where, text).run(); }

bool looks_like_ein(std::string_view text) {
  while (!text.empty()) {
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) return false;
    text.remove_prefix(start);
    if (text[0] != '#') break;
    const std::size_t end = text.find('\n');
    text.remove_prefix(end == std::string_view::npos ? text.size() : end);
  }
  for (const std::string_view keyword : {"size", "input", "weight"})
    if (text.starts_with(keyword) && text.size() > keyword.size() &&
        (text[keyword.size()] == ' ' || text[keyword.size()] == '\t'))
      return true;
  return false;
}

}  // namespace doppler::program
