import { ref } from 'vue'
import { recall, remember } from '../remembered.ts'

export type Theme = 'system' | 'light' | 'dark'

const wantsDark = matchMedia('(prefers-color-scheme: dark)')
const theme = ref<Theme>(asTheme(recall('theme')))

function asTheme(value: string | null): Theme {
  return value === 'light' || value === 'dark' ? value : 'system'
}

/** Whether the page is dark now. */
export const isDark = ref(false)

export function applyTheme(): void {
  isDark.value = theme.value === 'dark' || (theme.value === 'system' && wantsDark.matches)
  document.documentElement.dataset.theme = isDark.value ? 'dark' : 'light'
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
