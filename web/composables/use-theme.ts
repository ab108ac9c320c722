import { ref } from 'vue'
import { recall, remember } from '../remembered.ts'

export type Theme = 'system' | 'light' | 'dark'

const wantsDark = matchMedia('(prefers-color-scheme: dark)')
const theme = ref<Theme>(asTheme(recall('theme')))

function asTheme(value: string | null): Theme {
  return value === 'light' || value === 'dark' ? value : 'system'
}

export function applyTheme(): void {
  const dark = theme.value === 'dark' || (theme.value === 'system' && wantsDark.matches)
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'
}
wantsDark.addEventListener('change', applyTheme)

export function useTheme() {
  const choose = (wanted: Theme) => {
    theme.value = wanted
    remember('theme', wanted === 'system' ? null : wanted)
    applyTheme()
  }
  return { theme, choose }
}
