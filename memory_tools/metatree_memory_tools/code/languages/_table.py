"""What is known of each language: its files, its grammar, and queries for its definitions and imports.

A query names what it finds: the capture of a definition is its type (`@class`, `@function`, `@method`, …), `@name` is
its name (several are joined), `@scope` what the name is said of (the receiver of a Go method, the type of a Rust
`impl`), `@head` where its signature ends, if nothing that is known for a body begins there. Definitions in functions
are passed over. `@import` is what `references` resolves to files, `@package` the name that a file XX
Ids, descriptions and what is left follow the rules for Python. Lost: the language pack (loads parsers at run time),
the `tags.scm` of the grammars (some have none, others no methods).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """One language, as tree-sitter reads it."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    """The Python module with its grammar."""
    definitions: str
    imports: str = ""
    function: str = "language"
    """The function of the module that returns the grammar."""
    wrappers: frozenset[str] = frozenset()
    """Nodes around a definition that belong to it."""
    transparent: frozenset[str] = frozenset()
    """Nodes that hold definitions without being one: namespaces, linkage, conditional compilation."""
    trivial: frozenset[str] = frozenset()
    """Statements that say nothing: imports and the like; comments are, too."""
    noise: str = ""
    """A pattern of lines that are hidden from the parser, which cannot know what they stand for."""
    names: frozenset[str] = frozenset()
    """Files of these names are in this language, whatever their suffix."""
    separator: str = "."
    """What stands between the parts of a name in the language itself."""
    docs: str = ""
    """A query for documentation that is no comment above: `@above` belongs to the definition below it, `@doc` is its
    text, `@inside` the text that documents what holds it, which is `@of`; `@below` is a comment under a definition."""
    bodies: frozenset[str] = frozenset()
    """Nodes that are the body of a definition, beside those that many grammars have."""
    clauses: bool = False
    """Whether definitions of one name that follow one another are one, written in clauses."""
    dialect_of: str = ""
    """The language that its nodes are said to be in, if another."""
    extra: str = "languages"
    """The extra that installs its grammar."""


_JS_DEFINITIONS = """
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(class_body (method_definition name: (_) @name) @method)
(class_body (field_definition property: (_) @name value: [(arrow_function) (function_expression)]) @method)
(program (lexical_declaration . (variable_declarator name: (identifier) @name
    value: [(arrow_function) (function_expression) (generator_function)]) .) @function)
(program (variable_declaration . (variable_declarator name: (identifier) @name
    value: [(arrow_function) (function_expression) (generator_function)]) .) @function)
(program (lexical_declaration . (variable_declarator name: (identifier) @name value: (class)) .) @class)
(export_statement declaration: (lexical_declaration . (variable_declarator name: (identifier) @name
    value: [(arrow_function) (function_expression) (generator_function)]) .) @function)
(program (expression_statement (assignment_expression left: (member_expression) @name
    right: [(arrow_function) (function_expression) (generator_function)])) @function)
(program (expression_statement (assignment_expression left: (member_expression) @name right: (class))) @class)
"""
_TS_DEFINITIONS = (
    _JS_DEFINITIONS.replace("field_definition property:", "public_field_definition name:")
    + """
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @enum
(internal_module name: (_) @name) @module
(class_body (abstract_method_signature name: (_) @name) @method)
(function_signature name: (_) @name) @function
"""
)
_JS_IMPORTS = """
(import_statement source: (string) @import)
(export_statement source: (string) @import)
(call_expression function: (identifier) @called arguments: (arguments . (string) @import .)
    (#eq? @called "require"))
(call_expression function: (import) arguments: (arguments . (string) @import .))
"""
_C_DEFINITIONS = """
(function_definition declarator: (_) @declarator) @function
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @union
(enum_specifier name: (_) @name body: (_)) @enum
(type_definition type: [(struct_specifier body: (_)) (union_specifier body: (_)) (enum_specifier body: (_))]
    declarator: (type_identifier) @name) @type
(preproc_function_def name: (_) @name) @macro
"""
_C_INCLUDES = "(preproc_include path: (_) @import)"
_C_NOISE = r"^[ \t]*[A-Z][A-Z0-9]*_[A-Z0-9_]+[ \t]*$"
"""A macro alone on its line, such as G_BEGIN_DECLS; what follows would be taken for its declaration."""

_C_AROUND = frozenset(
    {"preproc_ifdef", "preproc_if", "preproc_else", "preproc_elif", "linkage_specification"}
)

_OCAML_DEFINITIONS = """
(value_definition . (let_binding pattern: (value_name) @name (parameter)) .) @function
(value_definition .
    (let_binding pattern: (value_name) @name body: [(fun_expression) (function_expression)]) .) @function
(value_definition (let_binding pattern: (value_name) @name (parameter)) @function)
(value_definition (let_binding pattern: (value_name) @name body: [(fun_expression) (function_expression)]) @function)
(value_specification . (_) @name) @function
(external . (_) @name) @function
(module_definition (module_binding . (module_name) @name body: (structure))) @module
(module_definition (module_binding . (module_name) @name module_type: (signature))) @module
(module_type_definition . (module_type_name) @name body: (signature)) @interface
(type_definition . (type_binding name: (_) @name) .) @type
(type_definition (type_binding name: (_) @name) @type)
(exception_definition (constructor_declaration . (constructor_name) @name)) @exception
(class_definition (class_binding (class_name) @name)) @class
(class_type_definition (class_type_binding (class_type_name) @name)) @interface
(method_definition (method_name) @name) @method
"""
_OCAML_DOCS = (
    "([(value_specification) (external) (type_definition) (exception_definition)] . (comment) @below)"
)
_OCAML_IMPORTS = "(module_path . (module_name) @import .) (include_module (_) @import)"

LANGUAGES = (
    Language(
        "javascript",
        (".js", ".mjs", ".cjs", ".jsx"),
        "tree_sitter_javascript",
        _JS_DEFINITIONS,
        _JS_IMPORTS,
        wrappers=frozenset({"export_statement"}),
        trivial=frozenset({"import_statement"}),
    ),
    Language(
        "typescript",
        (".ts", ".mts", ".cts"),
        "tree_sitter_typescript",
        _TS_DEFINITIONS,
        _JS_IMPORTS,
        function="language_typescript",
        wrappers=frozenset({"export_statement", "ambient_declaration", "expression_statement"}),
        trivial=frozenset({"import_statement"}),
    ),
    Language(
        "tsx",
        (".tsx",),
        "tree_sitter_typescript",
        _TS_DEFINITIONS,
        _JS_IMPORTS,
        function="language_tsx",
        dialect_of="typescript",
        wrappers=frozenset({"export_statement", "ambient_declaration", "expression_statement"}),
        trivial=frozenset({"import_statement"}),
    ),
    Language(
        "java",
        (".java",),
        "tree_sitter_java",
        """
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(record_declaration name: (_) @name) @record
(annotation_type_declaration name: (_) @name) @annotation
(method_declaration name: (_) @name) @method
(constructor_declaration name: (_) @name) @constructor
(compact_constructor_declaration name: (_) @name) @constructor
""",
        "(import_declaration) @import (package_declaration (_) @package)",
        trivial=frozenset({"import_declaration", "package_declaration"}),
    ),
    Language(
        "c",
        (".c", ".h"),
        "tree_sitter_c",
        _C_DEFINITIONS,
        _C_INCLUDES,
        transparent=_C_AROUND,
        noise=_C_NOISE,
        trivial=frozenset({"preproc_include"}),
    ),
    Language(
        "c++",
        (".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp", ".inl"),
        "tree_sitter_cpp",
        _C_DEFINITIONS
        + """
(class_specifier name: (_) @name body: (_)) @class
(alias_declaration name: (_) @name) @type
(concept_definition name: (_) @name) @concept
""",
        _C_INCLUDES,
        wrappers=frozenset({"template_declaration"}),
        transparent=_C_AROUND | {"namespace_definition"},
        noise=_C_NOISE,
        trivial=frozenset({"preproc_include", "using_declaration", "access_specifier"}),
        separator="::",
    ),
    Language(
        "c#",
        (".cs",),
        "tree_sitter_c_sharp",
        """
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(struct_declaration name: (_) @name) @struct
(enum_declaration name: (_) @name) @enum
(record_declaration name: (_) @name) @record
(delegate_declaration name: (_) @name) @delegate
(method_declaration name: (_) @name) @method
(constructor_declaration name: (_) @name) @constructor
(destructor_declaration name: (_) @name) @method
(operator_declaration operator: (_) @name) @method
(property_declaration name: (_) @name) @property
""",
        """
(using_directive) @import
(namespace_declaration name: (_) @package)
(file_scoped_namespace_declaration name: (_) @package)
""",
        transparent=frozenset({"namespace_declaration", "file_scoped_namespace_declaration"}),
        trivial=frozenset({"using_directive"}),
    ),
    Language(
        "go",
        (".go",),
        "tree_sitter_go",
        """
(function_declaration name: (_) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: (_) @scope)) name: (_) @name) @method
(source_file (type_declaration . (type_spec name: (_) @name) .) @type)
(source_file (type_declaration (type_spec name: (_) @name) @type))
(source_file (type_declaration (type_alias name: (_) @name)) @type)
""",
        "(import_spec path: (_) @import)",
        trivial=frozenset({"import_declaration", "package_clause"}),
    ),
    Language(
        "rust",
        (".rs",),
        "tree_sitter_rust",
        """
(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(struct_item name: (_) @name) @struct
(enum_item name: (_) @name) @enum
(union_item name: (_) @name) @union
(trait_item name: (_) @name) @trait
(type_item name: (_) @name) @type
(macro_definition name: (_) @name) @macro
(mod_item name: (_) @name body: (_)) @module
(impl_item type: (_) @scope) @impl
""",
        "(use_declaration argument: (_) @import) (mod_item name: (_) @module !body)",
        transparent=frozenset({"foreign_mod_item"}),
        trivial=frozenset({"use_declaration", "extern_crate_declaration", "inner_attribute_item"}),
        separator="::",
    ),
    Language(
        "ruby",
        (".rb", ".rake", ".gemspec"),
        "tree_sitter_ruby",
        """
(class name: (_) @name) @class
(module name: (_) @name) @module
(method name: (_) @name) @method
(singleton_method name: (_) @name) @method
""",
        """
(call method: (identifier) @called arguments: (argument_list . (string) @import .)
    (#any-of? @called "require_relative" "require" "load"))
""",
        transparent=frozenset({"singleton_class"}),
        names=frozenset({"Rakefile", "Gemfile"}),
    ),
    Language(
        "php",
        (".php", ".phtml"),
        "tree_sitter_php",
        """
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(trait_declaration name: (_) @name) @trait
(enum_declaration name: (_) @name) @enum
(function_definition name: (_) @name) @function
(method_declaration name: (_) @name) @method
""",
        """
(namespace_use_declaration) @import
(require_expression (_) @import) (require_once_expression (_) @import)
(include_expression (_) @import) (include_once_expression (_) @import)
(namespace_definition name: (_) @package)
""",
        function="language_php",
        transparent=frozenset({"namespace_definition", "compound_statement", "if_statement"}),
        trivial=frozenset({"namespace_use_declaration", "php_tag"}),
    ),
    Language(
        "kotlin",
        (".kt", ".kts"),
        "tree_sitter_kotlin",
        """
(class_declaration name: (_) @name) @class
(object_declaration name: (_) @name) @class
(function_declaration name: (_) @name) @function
""",
        "(import (qualified_identifier) @import) (package_header (qualified_identifier) @package)",
        trivial=frozenset({"import", "package_header"}),
    ),
    Language(
        "swift",
        (".swift",),
        "tree_sitter_swift",
        """
(class_declaration name: (_) @name) @class
(protocol_declaration name: (_) @name) @protocol
(function_declaration name: (_) @name) @function
(protocol_function_declaration name: (_) @name) @function
(init_declaration "init" @name) @constructor
""",
        trivial=frozenset({"import_declaration"}),
    ),
    Language(
        "scala",
        (".scala", ".sc"),
        "tree_sitter_scala",
        """
(class_definition name: (_) @name) @class
(object_definition name: (_) @name) @class
(trait_definition name: (_) @name) @trait
(enum_definition name: (_) @name) @enum
(function_definition name: (_) @name) @function
(function_declaration name: (_) @name) @function
""",
        "(import_declaration) @import (package_clause name: (_) @package)",
        transparent=frozenset({"package_clause"}),
        trivial=frozenset({"import_declaration"}),
    ),
    Language(
        "shell",
        (".sh", ".bash", ".bats", ".zsh"),
        "tree_sitter_bash",
        "(function_definition name: (_) @name) @function",
        """
(command name: (command_name) @called . argument: (_) @import (#any-of? @called "source" "."))
""",
    ),
    Language(
        "elixir",
        (".ex", ".exs"),
        "tree_sitter_elixir",
        """
(call target: (identifier) @called (arguments . [(alias) (dot)] @name) (#eq? @called "defmodule")) @module
(call target: (identifier) @called (arguments . [(alias) (dot)] @name) (#eq? @called "defprotocol")) @interface
(call target: (identifier) @called
    (arguments . (alias) @_trait (keywords (pair key: (keyword) @_for value: (_) @scope)))
    (#eq? @called "defimpl") (#match? @_for "^for:")) @impl
(call target: (identifier) @called
    (arguments . [
        (identifier) @name
        (call target: (identifier) @name)
        (binary_operator left: (call target: (identifier) @name) operator: "when")
        (binary_operator left: (identifier) @name operator: "when")
    ])
    (#any-of? @called
        "def" "defp" "defdelegate" "defguard" "defguardp" "defmacro" "defmacrop" "defn" "defnp")) @function
(call target: (identifier) @called (arguments . (string (quoted_content) @name))
    (#any-of? @called "test" "describe")) @test
""",
        """
(call target: (identifier) @called (arguments . [(alias) (dot)] @import)
    (#any-of? @called "alias" "import" "use" "require"))
(dot left: (alias) @import)
(call target: (identifier) @called (arguments . (alias) @package) (#any-of? @called "defmodule" "defprotocol"))
""",
        docs="""
((unary_operator operator: "@" operand: (call target: (identifier) @called)) @above
    (#any-of? @called "doc" "spec" "impl" "typedoc" "deprecated" "since" "tag"))
((unary_operator operator: "@" operand: (call target: (identifier) @called (arguments (_ (quoted_content) @doc))))
    (#any-of? @called "doc" "typedoc"))
(call (do_block (unary_operator operator: "@"
    operand: (call target: (identifier) @called (arguments (_ (quoted_content) @inside))))
    (#eq? @called "moduledoc"))) @of
""",
        bodies=frozenset({"do_block"}),
        clauses=True,
    ),
    Language(
        "haskell",
        (".hs",),
        "tree_sitter_haskell",
        """
(signature name: (variable) @name) @function
(signature name: (prefix_id (_) @name)) @function
(function name: (variable) @name) @function
(function name: (prefix_id (_) @name)) @function
(function (infix operator: [(operator) @name (infix_id (_) @name)])) @function
(bind name: (variable) @name) @function
(data_type name: (_) @name) @type
(newtype name: (_) @name) @type
(type_synonym name: (_) @name) @type
(type_family name: (_) @name) @type
(data_family name: (_) @name) @type
(class name: (_) @name) @class
(instance name: (_) @name patterns: (_) @name) @instance
(pattern_synonym (signature synonym: (_) @name)) @function
""",
        "(import module: (module) @import) (header module: (module) @package)",
        docs="(pragma) @above",
        bodies=frozenset(
            {
                "class_declarations",
                "instance_declarations",
                "data_constructors",
                "newtype_constructor",
                "match",
            }
        ),
        transparent=frozenset({"declarations"}),
        trivial=frozenset({"header", "imports", "pragma", "cpp"}),
        clauses=True,
    ),
    Language(
        "lua",
        (".lua",),
        "tree_sitter_lua",
        """
(function_declaration name: (_) @name) @function
(chunk (assignment_statement
    (variable_list . name: (_) @name .) (expression_list . value: (function_definition) .)) @function)
(chunk (variable_declaration (assignment_statement
    (variable_list . name: (_) @name .) (expression_list . value: (function_definition) .))) @function)
""",
        """
(function_call name: (identifier) @called arguments: (arguments . (string) @import .)
    (#any-of? @called "require" "dofile" "loadfile"))
""",
        separator=":",
    ),
    Language(
        "zig",
        (".zig",),
        "tree_sitter_zig",
        """
(function_declaration name: (_) @name) @function
(function_declaration name: (_) @name
    body: (block (expression_statement (return_expression [(struct_declaration) (union_declaration)])))) @struct
(variable_declaration . (identifier) @name (struct_declaration)) @struct
(variable_declaration . (identifier) @name (enum_declaration)) @enum
(variable_declaration . (identifier) @name (union_declaration)) @union
(variable_declaration . (identifier) @name (opaque_declaration)) @struct
(variable_declaration . (identifier) @name (error_set_declaration)) @type
(test_declaration [(string (string_content) @name) (identifier) @name]) @test
""",
        """((builtin_function (builtin_identifier) @called (arguments (string) @import)) (#eq? @called "@import"))""",
        bodies=frozenset(
            {"struct_declaration", "enum_declaration", "union_declaration", "opaque_declaration"}
        ),
    ),
    Language(
        "perl",
        (".pl", ".pm", ".t"),
        "tree_sitter_perl",
        """
(subroutine_declaration_statement name: (_) @name) @function
(method_declaration_statement name: (_) @name) @method
(package_statement name: (_) @name (block)) @module
(class_statement name: (_) @name (block)) @class
""",
        """
(use_statement module: (package) @import)
(require_expression (_) @import)
(package_statement name: (package) @package)
""",
        docs="(pod) @above @doc",
        trivial=frozenset({"use_statement", "package_statement", "eof_marker", "pod"}),
        separator="::",
    ),
    Language(
        "julia",
        (".jl",),
        "tree_sitter_julia",
        """
(module_definition name: (_) @name @head) @module
(function_definition (signature (call_expression . (_) @name)) @head) @function
(function_definition (signature (typed_expression . (call_expression . (_) @name))) @head) @function
(function_definition (signature (where_expression . (call_expression . (_) @name))) @head) @function
(function_definition
    (signature (where_expression . (typed_expression . (call_expression . (_) @name)))) @head) @function
(assignment . (call_expression . (_) @name) @head) @function
(assignment . (typed_expression . (call_expression . (_) @name)) @head) @function
(assignment . (where_expression . (call_expression . (_) @name)) @head) @function
(macro_definition (signature (call_expression . (_) @name)) @head) @macro
(struct_definition (type_head [(identifier) @name (binary_expression . (identifier) @name)]) @head) @struct
(struct_definition (type_head [
    (parametrized_type_expression . (identifier) @name)
    (binary_expression . (parametrized_type_expression . (identifier) @name))]) @head) @struct
(abstract_definition (type_head [(identifier) @name (binary_expression . (identifier) @name)])) @type
(abstract_definition (type_head [
    (parametrized_type_expression . (identifier) @name)
    (binary_expression . (parametrized_type_expression . (identifier) @name))])) @type
""",
        """
((call_expression . (identifier) @called (argument_list . (string_literal) @import .)) (#eq? @called "include"))
""",
        docs="""
((string_literal (content) @doc) @above . [(function_definition) (macro_definition) (struct_definition)
    (abstract_definition) (assignment) (module_definition) (const_statement) (identifier)])
""",
        trivial=frozenset({"using_statement", "import_statement", "export_statement", "string_literal"}),
        extra="more-languages",
    ),
    Language(
        "ocaml",
        (".ml",),
        "tree_sitter_ocaml",
        _OCAML_DEFINITIONS,
        _OCAML_IMPORTS,
        function="language_ocaml",
        docs=_OCAML_DOCS,
        extra="more-languages",
        bodies=frozenset({"structure", "signature", "object_expression"}),
        trivial=frozenset({"open_module"}),
    ),
    Language(
        "ocaml interface",
        (".mli",),
        "tree_sitter_ocaml",
        _OCAML_DEFINITIONS,
        _OCAML_IMPORTS,
        function="language_ocaml_interface",
        docs=_OCAML_DOCS,
        extra="more-languages",
        bodies=frozenset({"structure", "signature", "object_expression"}),
        trivial=frozenset({"open_module"}),
        dialect_of="ocaml",
    ),
    Language(
        "sql",
        (".sql",),
        "tree_sitter_sql",
        """
(create_table (object_reference) @name) @table
(create_view (object_reference) @name) @view
(create_materialized_view (object_reference) @name) @view
(create_function (object_reference) @name) @function
(create_trigger (object_reference) @name) @trigger
(create_type (object_reference) @name) @type
(create_index column: (identifier) @name) @index
""",
        wrappers=frozenset({"statement"}),
        extra="more-languages",
    ),
    Language(
        "hcl",
        (".tf", ".hcl", ".nomad"),
        "tree_sitter_hcl",
        """
(config_file (body (block . (identifier) (string_lit (template_literal) @name)+ (block_start)) @block))
(config_file (body (block . (identifier) @name . (block_start)) @block))
""",
        """
((block . (identifier) @called (body (attribute (identifier) @_key (expression (literal_value (string_lit) @import)))))
    (#eq? @called "module") (#eq? @_key "source"))
""",
        transparent=frozenset({"body"}),
        bodies=frozenset({"body"}),
    ),
)
"""Every language; `code` takes those whose grammar is installed."""
