@echo off
rem Double-click to open Tandem on Windows: the installed program, or the checkout that this file lies in.
where tandem-gui >nul 2>nul
if %errorlevel%==0 (
    start "" tandem-gui
    exit /b 0
)
set "ROOT=%~dp0..\.."
if exist "%ROOT%\.venv\Scripts\tandem-gui.exe" (
    start "" "%ROOT%\.venv\Scripts\tandem-gui.exe"
    exit /b 0
)
echo Tandem is not installed. Install it with: py -m pip install "%ROOT%"
pause
exit /b 1
