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

export default defineConfig({
  root: `${import.meta.dirname}/web`,
  base: '/',
  plugins: [vue(), tailwind(), woff2Only],
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
