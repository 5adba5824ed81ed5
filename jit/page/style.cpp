// The look of the page that Explanation::to_html() writes. On paper all is shown that is open.
#include "jit/page/html.h"

namespace nitinol::jit {

const std::string_view page_style = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1c2430; --faint: #5c6675; --rule: #d8dee6;
  --panel: #f5f7fa; --kernel: #dbeafe; --kernel-edge: #3b76c9; --library: #fde8d0; --library-edge: #c2761b;
  --input: #eceff3; --input-edge: #8a94a3; --output: #dcf3e1; --output-edge: #2f8f4e; --line: #8793a5;
  --move: #3b76c9; --compute: #d9822b; --warn: #a1440c; }
@media (prefers-color-scheme: dark) { :root { --back: #14181f; --text: #dfe5ee; --faint: #97a3b4; --rule: #323b48;
  --panel: #1c222b; --kernel: #1c3557; --kernel-edge: #5b96e6; --library: #4a3015; --library-edge: #dd9745;
  --input: #29303a; --input-edge: #76828f; --output: #17402a; --output-edge: #4fb673; --line: #697687;
  --move: #5b96e6; --compute: #e39a4c; --warn: #f0a36b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 84rem; padding: 1rem 1.5rem 3rem; background: var(--back); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: .2rem 0; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.3rem 0 .4rem; }
p { margin: .3rem 0; } ul { margin: .3rem 0; padding-left: 1.3rem; } a { color: inherit; }
.faint { color: var(--faint); } .warn { color: var(--warn); }
code, pre, .mono { font: 12.5px/1.4 ui-monospace, monospace; }
pre { margin: .3rem 0; padding: .6rem .8rem; overflow: auto; max-height: 32rem; background: var(--panel);
  border: 1px solid var(--rule); border-radius: 6px; }
summary { cursor: pointer; } summary:hover { background: var(--panel); }
.signature { border: 1px solid var(--rule); border-radius: 8px; margin: .6rem 0; }
.signature > summary { padding: .5rem .8rem; overflow-wrap: anywhere; } .signature > div { padding: 0 .8rem .8rem; }
.tier { border: 1px solid var(--rule); border-radius: 1rem; padding: 0 .55rem; font-size: .85em; white-space: nowrap; }
table { border-collapse: collapse; margin: .3rem 0; } th { text-align: left; font-weight: 600; color: var(--faint); }
th, td { padding: .12rem .8rem .12rem 0; vertical-align: top; } td.number { text-align: right; white-space: nowrap; }
.step { border-top: 1px solid var(--rule); } .step > div { padding: .2rem 0 .8rem 1.4rem; scroll-margin-top: 4rem; }
.step > summary { display: flex; gap: .8rem; align-items: baseline; padding: .25rem 0; }
.step .what { flex: 1; overflow-wrap: anywhere; } .step .where { flex: 0 1 22rem; color: var(--faint); overflow-wrap: anywhere; }
.step .bytes { width: 6rem; text-align: right; } .step .bound { width: 5rem; text-align: right; } .step svg { flex: none; }
.kernel-name, .library-name { border-radius: 4px; padding: 0 .35rem; font-size: .85em; }
.kernel-name { background: var(--kernel); } .library-name { background: var(--library); }
.drawing { overflow: auto; max-height: 42rem; border: 1px solid var(--rule); border-radius: 6px; background: var(--panel); }
.drawing svg { display: block; margin: 0 auto; } .whole { margin: .4rem .4rem .4rem 0; } .whole + label { color: var(--faint); }
.whole:checked + label + .drawing { max-height: none; } .whole:checked + label + .drawing svg { max-width: 100%; height: auto; }
svg text { fill: var(--text); font: 11px system-ui, sans-serif; } svg .title { font-weight: 600; }
svg .faint { fill: var(--faint); } svg rect.kernel { fill: var(--kernel); stroke: var(--kernel-edge); }
svg rect.library { fill: var(--library); stroke: var(--library-edge); } svg rect.input { fill: var(--input); stroke: var(--input-edge); }
svg rect.output { fill: var(--output); stroke: var(--output-edge); } svg a:hover rect { stroke-width: 2.5; }
svg path { fill: none; stroke: var(--line); stroke-width: 1.2; } svg path:hover { stroke: var(--compute); stroke-width: 3; }
svg .size { font-size: 9.5px; fill: var(--faint); paint-order: stroke; stroke: var(--panel); stroke-width: 3px; }
svg .move { fill: var(--move); } svg .compute { fill: var(--compute); } svg .track { fill: var(--rule); }
svg .block { stroke: var(--panel); fill-opacity: .8; } svg .axis { stroke: var(--rule); }
:target { outline: 2px solid var(--kernel-edge); outline-offset: 2px; border-radius: 4px; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } .drawing, pre { max-height: none; overflow: visible; } .whole, .whole + label { display: none; }
  .drawing svg { max-width: 100%; height: auto; } pre { white-space: pre-wrap; } .step { break-inside: avoid-page; } }
)css";

}  // namespace nitinol::jit
