import { expect, it } from 'vitest'
import { causeLine } from './cause-line.ts'

it.each([
  [
    "node:internal/modules/cjs/loader:1207\n  throw err;\n  ^\n\nError: Cannot find module '/x.js'\n    at f (node:internal:1:2)\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v24.1.0\n",
    "Error: Cannot find module '/x.js'"
  ],
  [
    'Traceback (most recent call last):\n  File "/a.py", line 1, in <module>\n    import x\nModuleNotFoundError: No module named \'x\'\n',
    "ModuleNotFoundError: No module named 'x'"
  ],
  [
    'npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x - Not found\nnpm error A complete log of this run\n',
    'npm error 404 Not Found - GET https://registry.example/x - Not found'
  ],
  ['panic: no token\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:3 +0x1\n', 'panic: no token'],
  ['Usage: x --root DIR\n  throw it\n    at y (z.js:1:2)\n', 'Usage: x --root DIR'],
  [
    "docker: Error response from daemon: pull access denied for x.\n\nRun 'docker run --help' for more information\n",
    'docker: Error response from daemon: pull access denied for x'
  ],
  ['', undefined]
])('finds the line that names the cause', (output, cause) => {
  expect(causeLine(output)).toBe(cause)
})
