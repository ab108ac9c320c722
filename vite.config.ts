import tailwind from '@tailwindcss/vite'
import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

export default defineConfig({
  root: `${import.meta.dirname}/web`,
  base: '/',
  plugins: [vue(), tailwind()],
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
