; Windows: an installer of the frozen program, by Inno Setup 6. NOT TRIED: nobody has run this yet.
; On Windows, in a Python that has Tandem's packages and PyInstaller:
;   python packaging\build.py --no-smoke
;   iscc /DVersion=0.1.0 packaging\elsewhere\tandem.iss
; SmartScreen stops an unsigned installer: sign dist\tandem\tandem.exe and the installer with
;   signtool sign /fd SHA256 /tr http://timestamp.digicert.com /td SHA256 FILE

#ifndef Version
  #error Name the version: iscc /DVersion=0.1.0 tandem.iss
#endif

[Setup]
AppId=app.tandem.Tandem
AppName=Tandem
AppVersion={#Version}
AppPublisher=The Tandem developers
DefaultDirName={autopf}\Tandem
DefaultGroupName=Tandem
; For this user alone, so that no password is needed.
PrivilegesRequired=lowest
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
ChangesAssociations=yes
Compression=lzma2
LicenseFile=..\..\LICENSE
OutputBaseFilename=tandem-{#Version}-x64
OutputDir=..\..\dist
SolidCompression=yes
UninstallDisplayIcon={app}\tandem.exe
WizardStyle=modern

[Tasks]
Name: startup; Description: "Start Tandem when I log in"; Flags: unchecked
Name: openwith; Description: "Offer Tandem under 'Open with' of scripts and notebooks"

[Files]
Source: "..\..\dist\tandem\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[Icons]
Name: "{group}\Tandem"; Filename: "{app}\tandem.exe"
Name: "{userstartup}\Tandem"; Filename: "{app}\tandem.exe"; Tasks: startup

[Registry]
Root: HKCU; Subkey: "Software\Classes\Applications\tandem.exe\shell\open\command"; ValueType: string; ValueData: """{app}\tandem.exe"" ""%1"""; Tasks: openwith; Flags: uninsdeletekey
Root: HKCU; Subkey: "Software\Classes\Applications\tandem.exe\SupportedTypes"; ValueName: ".py"; ValueType: string; Tasks: openwith
Root: HKCU; Subkey: "Software\Classes\Applications\tandem.exe\SupportedTypes"; ValueName: ".ipynb"; ValueType: string; Tasks: openwith

[Run]
Filename: "{app}\tandem.exe"; Description: "Open Tandem"; Flags: postinstall nowait skipifsilent

[Code]
procedure CurUninstallStepChanged(Step: TUninstallStep);
var
  Ended: Integer;
begin
  // Keep the home unless the user wants it deleted: the default button keeps it.
  if Step = usUninstall then
    if MsgBox('Delete all that Tandem keeps as well: its key, paired laptops, settings, runs and models?',
              mbConfirmation, MB_YESNO or MB_DEFBUTTON2) = IDYES then
      Exec(ExpandConstant('{app}\tandem.exe'), 'uninstall --delete-home', '', SW_HIDE, ewWaitUntilTerminated, Ended);
end;
