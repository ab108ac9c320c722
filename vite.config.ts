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

export default defineConfig({
  root: `${import.meta.dirname}/web`,
  base: '/',
  plugins: [vue(), tailwind(), woff2Only],
  // The code that draws diagrams is built like a worker: one file without imports.
  worker: { format: 'iife', plugins: () => [leanMermaid] },
  build: {
    outDir: `${import.meta.dirname}/dist/web`,
    emptyOutDir: true,
    // Nothing may stand inside the page itself: its Content-Security-Policy allows no inline script and no data: font.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false
  },
  server: { proxy: { '/api': 'http://localhost:3000', '/readyz': 'http://localhost:3000' } }
})
