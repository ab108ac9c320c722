import { createPinia } from 'pinia'
import { createApp } from 'vue'
import App from './App.vue'
import { applyTheme } from './composables/use-theme.ts'
import { watchMissingParts } from './missing-parts.ts'
import './style.css'

applyTheme()
createApp(App).use(createPinia()).mount('#app')
watchMissingParts()
