import tailwind from '@tailwindcss/vite'
import vue from '@vitejs/plugin-vue'
import { defineConfig, type Plugin } from 'vite'

/** All browsers that the page supports read WOFF2; KaTeX names two older formats of each font too. */
const woff2Only: Plugin = {
  name: 'woff2-only',
  enforce: 'pre',
  transform(code, id) {
    if (!id.includes('katex') || !id.includes('.css')) return null
    return code.replace(/,url\([^)]*\.(?:woff|ttf)\) format\("[^"]*"\)/g, '')
  }
}

/** Parts of Mermaid that stay out: a layout with a licence that is not permissive, and math, which would add 260 kB. */
const leanMermaid: Plugin = {
  name: 'lean-mermaid',
  enforce: 'pre',
  resolveId: (source) => (/^(elkjs|katex)(\/|$)/.test(source) ? '\0left-out' : null),
  load: (id) =>
    id === '\0left-out'
      ? 'export default class { constructor() { throw new Error("This is not supported here.") } }'
      : null
}

/**
 * The page reads the constants of the contract, but hardly a schema, and one would load all of zod. So all of them are marked as free of
 * side effects: what is unused is left out.
 */
const unusedSchemas: Plugin = {
  name: 'unused-schemas',
  transform(code, id) {
    if (!/\/contract\/.*\.ts$/.test(id)) return null
    const made = this.parse(code).body.flatMap((statement) => {
      const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
      if (declared?.type !== 'VariableDeclaration') return []
      return declared.declarations.flatMap(({ init }) => (init && /\bz\./.test(text(init)) ? [init] : []))
    })
    function text({ start, end }: { start: number; end: number }): string {
      return code.slice(start, end)
    }
    return made.reduceRight(
      (rest, init) => `${rest.slice(0, init.start)}/* @__PURE__ */ (() => (${text(init)}))()${rest.slice(init.end)}`,
      code
    )
  }
}

export default defineConfig({
  root: `${import.meta.dirname}/web`,
  base: '/',
  plugins: [vue(), tailwind(), woff2Only, unusedSchemas],
  // Components are written with `<script setup>` only.
  define: { __VUE_OPTIONS_API__: false },
  // The code that draws diagrams is built like a worker: one file without imports.
  worker: { format: 'iife', plugins: () => [leanMermaid] },
  build: {
    outDir: `${import.meta.dirname}/dist/web`,
    emptyOutDir: true,
    // Nothing may stand inside the page itself: its Content-Security-Policy allows no inline script and no data: font.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      // Puts the code that every visit needs into two files instead of twenty. Packages change less often than the page.
      output: {
        codeSplitting: {
          groups: [
            { name: 'packages', tags: ['$initial'], test: /node_modules/, priority: 1 },
            { name: 'page', tags: ['$initial'] }
          ]
        }
      }
    }
  },
  server: { proxy: { '/api': 'http://localhost:3000', '/readyz': 'http://localhost:3000' } }
})
